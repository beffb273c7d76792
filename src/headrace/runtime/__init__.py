"""Decides what one connector does: rounds, micro-batches, tokens, fencing. Knows no Spark and no HTTP."""
