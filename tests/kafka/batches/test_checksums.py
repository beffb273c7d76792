"""Checksums: the library's, and of what has another beginning."""

from __future__ import annotations

import random

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.checksums import crc32c, crc32c_of_replaced

lengths = st.integers(0, 300) | st.integers(0, 200_000)


@given(st.binary(), st.binary())
def test_bytes_of_any_kind_have_the_same_checksum(first: bytes, second: bytes) -> None:
    """Also what lies in the middle of others, and behind what was counted before."""
    expected = google_crc32c.value(first + second)

    for kind in (bytes, bytearray, memoryview):
        assert expected == crc32c(kind(second), crc32c(kind(first)))
    assert google_crc32c.value(second) == crc32c(memoryview(first + second)[len(first) :])


@given(st.integers(0, 50), lengths, st.randoms(use_true_random=False))
def test_a_beginning_can_be_replaced(beginning: int, behind: int, drawn: random.Random) -> None:
    """Without looking at what comes behind it."""
    old, new, rest = (drawn.randbytes(size) for size in (beginning, beginning, behind))

    found = crc32c_of_replaced(crc32c(old + rest), old, new, behind)

    assert google_crc32c.value(new + rest) == found


@pytest.mark.parametrize("power", range(0, 28, 9))
def test_any_number_of_bytes_may_come_behind(power: int) -> None:
    """As many as a batch may have."""
    rest = bytes(1 << power)

    assert google_crc32c.value(b"new" + rest) == crc32c_of_replaced(
        crc32c(b"old" + rest), b"old", b"new", len(rest)
    )
