"""The judge of end-to-end tests: what the client library, which writes nothing there, reads of topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_LARGEST = 8_000_000


def messages(bootstrap: str, topics: Sequence[str], *, seconds: float = 60.0) -> Iterator[Message]:
    """What the client library reads with ``read_committed``, up to the end of each partition.

    Fails when nothing has come for *seconds*.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.message.max.bytes": _LARGEST,
    }
    with closing(Consumer(settings)) as consumer:
        listed = consumer.list_topics(timeout=30).topics
        places = [
            TopicPartition(each, number, 0) for each in topics for number in listed[each].partitions
        ]
        consumer.assign(places)
        left = len(places)
        while left:
            message = consumer.poll(seconds)
            assert message is not None, "the judge has read nothing for long"
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left -= 1
                continue
            yield message
