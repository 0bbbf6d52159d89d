"""What people read: pure functions from results, as the data contract has them, to text for a terminal."""
