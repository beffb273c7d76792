"""Where Java's partitioner puts a key."""

from __future__ import annotations

import pytest

from headrace.kafka.partitioner import java_partition, murmur2


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_javas(key: bytes, signed: int) -> None:
    """The values are those of Kafka's own test; the partition is that of the hash without its sign."""
    assert signed & 0xFFFFFFFF == murmur2(key)
    assert (signed & 0x7FFFFFFF) % 7 == java_partition(key, 7)
