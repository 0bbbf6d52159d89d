"""What decides which legal forms enter: search, shares, room, prices and the accounts of who pays."""
