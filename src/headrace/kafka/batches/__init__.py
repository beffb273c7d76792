"""Kafka's record batches as Arrow columns (message formats 0 to 2)."""
