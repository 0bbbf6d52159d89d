"""The ledger: the one record of what the stores know; every index can be rebuilt from it."""
