"""The bytes of heartbeats, checkpoints, offset syncs and offset ranges."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.mirror.formats import Checkpoint, Heartbeat, OffsetRange, OffsetSync

TEXTS = st.text(max_size=20)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**62)
KINDS = (Heartbeat, Checkpoint, OffsetSync, OffsetRange)
RECORDS = st.one_of(
    st.builds(Heartbeat, TEXTS, TEXTS, LONGS),
    st.builds(Checkpoint, TEXTS, TEXTS, INTS, LONGS, LONGS, TEXTS),
    st.builds(OffsetSync, TEXTS, INTS, LONGS, LONGS),
    st.builds(OffsetRange, TEXTS, INTS, OFFSETS, OFFSETS, st.integers(1, 2**40)),
)


@given(RECORDS)
def test_what_was_written_is_read(record: Heartbeat | Checkpoint | OffsetSync | OffsetRange):
    """Every field comes back."""
    assert record == type(record).decoded(*record.encoded())


@given(RECORDS, st.data())
def test_bytes_that_end_early_are_refused(
    record: Heartbeat | Checkpoint | OffsetSync | OffsetRange, data: st.DataObject
):
    """With a sentence that says of what they are."""
    key, value = record.encoded()
    length = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(ValueError, match=r"The value of an? .* ends after"):
        type(record).decoded(key, value[:length])


@pytest.mark.parametrize("kind", KINDS)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_other_bytes_are_read_or_refused_but_never_anything_else(
    kind: type[Heartbeat], key: bytes, value: bytes
):
    """No exception of another kind leaves the reader."""
    with suppress(ValueError):
        assert isinstance(kind.decoded(key, value), kind)


def test_another_version_is_refused():
    """Its fields may be others."""
    key, value = Heartbeat("a", "b", 1).encoded()
    with pytest.raises(ValueError, match="has version 1, and only 0 is known"):
        Heartbeat.decoded(key, b"\x00\x01" + value[2:])


def test_a_text_that_does_not_fit_is_refused_when_it_is_written():
    """Its length has two bytes."""
    with pytest.raises(ValueError, match="has 40000 bytes"):
        OffsetSync("t" * 40000, 0, 1, 1).encoded()


def test_a_range_of_nothing_is_refused():
    """It would contradict what is known and say nothing."""
    key, value = OffsetRange("t", 0, 5, 7, 0).encoded()
    with pytest.raises(ValueError, match="is no range of offsets"):
        OffsetRange.decoded(key, value)
