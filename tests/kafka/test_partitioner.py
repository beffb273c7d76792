"""Where Java's partitioner puts a key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.partitioner import java_partition, java_partitions, murmur2, murmur2s


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


@given(st.lists(st.binary(max_size=30) | st.binary(min_size=300, max_size=600), max_size=60))
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_many_keys_are_hashed_as_each_alone(kind: pa.DataType, keys: list[bytes]) -> None:
    """Keys of any lengths, in the middle of a column."""
    column = pa.array([b"before", *keys, b"after"], kind).slice(1, len(keys))

    assert [murmur2(key) for key in keys] == murmur2s(column).tolist()
    assert [java_partition(key, 7) for key in keys] == java_partitions(column, 7).tolist()
