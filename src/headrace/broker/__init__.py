"""A real Kafka broker of one node on this machine, for trying things and for tests."""

from headrace.broker.broker import Broker
from headrace.broker.folder import BrokerState

__all__ = ["Broker", "BrokerState"]
