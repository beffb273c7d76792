"""What runs one connector: its rounds, the micro-batches of each, and who may write meanwhile."""
