"""Offsets as the bytes that Kafka Connect writes, checked against what Java itself produced."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.partition import OffsetValue, SourcePartition
from headrace.offsets.codec import (
    OffsetKey,
    Unreadable,
    decoded_key,
    decoded_value,
    encoded_entries,
    encoded_key,
    encoded_value,
    in_java_order,
)

# Text that UTF-8 can hold; half surrogate pairs are refused.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
stored_values = st.none() | st.booleans() | numbers | texts
offset_maps = st.dictionaries(texts, stored_values, max_size=30)


@given(texts, offset_maps)
def test_keys_come_back(connector: str, values: dict[str, OffsetValue]) -> None:
    """Any connector name and any partition survive the way through bytes."""
    partition = SourcePartition(values)

    expected = OffsetKey(connector=connector, partition=partition)
    assert expected == decoded_key(encoded_key(connector, partition))


@given(offset_maps)
def test_values_come_back(offset: dict[str, OffsetValue]) -> None:
    """Any offset survives the way through bytes, with its types."""
    back = decoded_value(encoded_value(offset))

    assert isinstance(back, dict)
    assert SourcePartition(offset) == SourcePartition(back)


@given(offset_maps, st.randoms(use_true_random=False))
def test_entries_that_share_no_bucket_have_one_order(
    values: dict[str, OffsetValue], random: object
) -> None:
    """The author's order makes no difference beyond keys that Java keeps in one bucket."""
    once = in_java_order(values)

    assert once == in_java_order(once)
    assert sorted(once) == sorted(values)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("topic partition cluster", "cluster partition topic"),
        ("topic group partition", "partition topic group"),
        ("targetClusterAlias sourceClusterAlias", "sourceClusterAlias targetClusterAlias"),
        ("filename", "filename"),
        (
            "topic partition cluster filename é ☃ 𝄞 aaaaaa targetClusterAlias group a b c k1 k2 k3 k4 k5",
            "cluster a b ☃ c k1 k2 k3 é k4 aaaaaa k5 targetClusterAlias 𝄞 partition filename topic group",
        ),
    ],
)
def test_keys_are_in_the_order_of_a_java_map(keys: str, expected: str) -> None:
    """Buckets, their doubling and UTF-16 units are those of java.util.HashMap."""
    assert expected.split() == in_java_order(keys.split())


def test_the_mirrors_key_is_the_one_in_the_topic() -> None:
    """The well known example, from a map in another order."""
    partition = SourcePartition({"topic": "t", "partition": 0, "cluster": "primary"})

    expected = b'["mirror",{"cluster":"primary","partition":0,"topic":"t"}]'
    assert expected == encoded_key("mirror", partition)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (41, "41"),
        (-(2**63), "-9223372036854775808"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e10, "1.0E10"),
        (1e-5, "1.0E-5"),
        (1e-3, "0.001"),
        (9999999.999, "9999999.999"),
        (1e7, "1.0E7"),
        (4.9e-324, "4.9E-324"),
        (math.nan, '"NaN"'),
        (-math.inf, '"-Infinity"'),
        (b"\x01\x02\xff", '"AQL/"'),
        (
            '\x01\x1f\x7f/"\\\b\t\n\f\r é☃𝄞',
            '"\\u0001\\u001F\x7f/\\"\\\\\\b\\t\\n\\f\\r é☃\\uD834\\uDD1E"',
        ),
    ],
)
def test_values_are_written_as_java_writes_them(value: OffsetValue, expected: str) -> None:
    """Numbers, escapes and bytes are those of Kafka Connect's JSON converter."""
    assert f'{{"v":{expected}}}'.encode() == encoded_value({"v": value})


def test_bytes_come_back_as_text() -> None:
    """As in Kafka Connect, nothing says that a text was bytes once."""
    assert {"v": "AQL/"} == decoded_value(encoded_value({"v": b"\x01\x02\xff"}))


def test_half_a_surrogate_pair_is_refused() -> None:
    """Text that is not UTF-8 is refused before anything is written."""
    with pytest.raises(ValueError, match="surrogate"):
        encoded_value({"v": "\ud800"})


def test_a_removal_is_a_tombstone() -> None:
    """An offset of None becomes a record without a value."""
    one, two = SourcePartition(n=1), SourcePartition(n=2)

    expected = [(b'["c",{"n":1}]', b'{"p":3}'), (b'["c",{"n":2}]', None)]
    assert expected == encoded_entries("c", {one: {"p": 3}, two: None})


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"connector",
        b"\xff\xfe",
        b"{}",
        b"[]",
        b'["c"]',
        b'["c",null]',
        b'[1,{"a":1}]',
        b'["c",[1]]',
        b'["c",{"a":{"b":1}}]',
        b'["c",{"a":9223372036854775808}]',
        b'["c",{},{}]',
        b"[" * 100_000,
    ],
)
def test_foreign_keys_have_a_reason(key: bytes | None) -> None:
    """A key that no one of ours wrote is a value with a reason, never an exception."""
    read = decoded_key(key)

    assert isinstance(read, Unreadable)
    assert read.reason


@pytest.mark.parametrize("value", [b"1", b"[]", b"x", b'"text"', b'{"a":[]}', b"\xff"])
def test_foreign_values_have_a_reason(value: bytes) -> None:
    """A value that is not an offset is never taken for "no offset"."""
    assert isinstance(decoded_value(value), Unreadable)


@pytest.mark.parametrize("value", [None, b"null"])
def test_nothing_is_no_offset(value: bytes | None) -> None:
    """A tombstone and JSON's null both say that nothing is stored."""
    assert decoded_value(value) is None
