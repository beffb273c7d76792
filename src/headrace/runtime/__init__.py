"""Decides what runs: the life of connectors, plans, tokens, capacity. Knows no Spark and no HTTP."""
