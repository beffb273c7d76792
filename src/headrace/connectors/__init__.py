"""Connectors that come with headrace; each is an ordinary user of the contract."""
