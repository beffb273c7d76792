"""Messages of Kafka's protocol that kafka-python lacks, as the descriptions that its classes are made from."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__name__):
    """Asks for the members of groups of the newer protocol (KIP-848), about which DescribeGroups says nothing."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__name__):
    """The members of groups."""
