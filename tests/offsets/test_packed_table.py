"""A table of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.offsets.index import PackedTable

TEXTS = st.text(max_size=5).map(str.encode)
WRITES = st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=60)


def filled(writes: list[tuple[bytes, bytes | None]]) -> tuple[PackedTable, dict[bytes, bytes]]:
    """A table after *writes*, of which ``None`` removes, and what is to be in it."""
    table, expected = PackedTable(), dict[bytes, bytes]()
    for key, value in writes:
        if value is None:
            table.remove(key)
            expected.pop(key, None)
        else:
            table.put(key, value)
            expected[key] = value
    return table, expected


@given(WRITES)
def test_it_is_a_dictionary_of_bytes(writes: list[tuple[bytes, bytes | None]]):
    """Whatever is written in whatever order; empty keys and keys inside others, too."""
    table, expected = filled(writes)

    assert (len(expected), expected) == (len(table), dict(table.items()))
    assert [expected.get(key) for key, _ in writes] == [table.get(key) for key, _ in writes]


def test_it_grows():
    """Each of many is found, and a bucket never holds many."""
    table = PackedTable()
    for number in range(5000):
        assert table.setdefault(b"%d" % number, b"v%d" % number) is None

    assert all(table.get(b"%d" % number) == b"v%d" % number for number in range(5000))
    assert b"v7" == table.setdefault(b"7", b"other") == table.get(b"7")
    assert table.get(b"5000") is None
    assert max(bucket.count(b"\xfe") for bucket in table.buckets) < 100


@given(WRITES, WRITES)
def test_a_copy_has_a_life_of_its_own(
    before: list[tuple[bytes, bytes | None]], later: list[tuple[bytes, bytes | None]]
):
    """What is written afterwards is not in it; the two tell in what they may differ."""
    table, expected = filled(before)
    copied = table.copy()
    for key, value in later:
        table.put(key, value or b"")

    assert (len(expected), expected) == (len(copied), dict(copied.items()))
    now = dict(table.items())
    changed = {key: value for key, value in now.items() if expected.get(key) != value}
    assert changed.items() <= set(table.items_unlike(copied))
    assert [] == list(copied.items_unlike(copied.copy()))
