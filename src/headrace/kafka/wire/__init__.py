"""Kafka's protocol on sockets, for what the client library has no call for."""
