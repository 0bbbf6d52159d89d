"""The compile failure: its data, its proof, its cures and who can bring them about."""
