"""Kafka as a source of Spark SQL and Structured Streaming: ``format("headrace-kafka")``."""
