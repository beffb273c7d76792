"""Kafka Connect's single-message transformations and predicates, on batches and on single records."""
