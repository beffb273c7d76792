"""Runs one connector: rounds, micro-batches, tokens, fencing. Independent of Spark and HTTP."""
