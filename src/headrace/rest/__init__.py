"""The HTTP side of a worker: Kafka Connect's REST API; the only package that imports the web framework."""
