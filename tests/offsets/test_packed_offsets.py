"""Offsets that are packed, and what they are when they are asked for."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.partition import SourceOffset, SourcePartition, of_names
from headrace.offsets.codec import encoded_entries
from headrace.offsets.index import LogPosition, OffsetIndex, packed_partition

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text()
# "Aa" and "BB" share a bucket of Java's map.
NAMES = st.sampled_from(["filename", "from", "to", "Aa", "BB", "", "ü", '"'])
PARTITIONS = st.dictionaries(NAMES, SCALARS, max_size=3).map(SourcePartition)
FILES = {SourcePartition(filename=name): {"n": name} for name in ("a", "b")}
RANGE = SourcePartition({"filename": "a", "from": 1, "to": 2})


def at(offset: int) -> LogPosition:
    """Where a record lies."""
    return LogPosition(partition=0, offset=offset, timestamp=-1)


def index_of(offsets: dict[SourcePartition, SourceOffset]) -> OffsetIndex:
    """An index of *offsets*, stored under our bytes."""
    index = OffsetIndex()
    for number, (key, value) in enumerate(encoded_entries("c", offsets)):
        index.apply(key, value, at(number))
    return index


@given(PARTITIONS, PARTITIONS)
def test_equal_partitions_and_no_others_have_the_same_bytes(
    one: SourcePartition, two: SourcePartition
):
    """In whatever order their entries came."""
    packed = packed_partition(one)
    assert packed is None or (packed == packed_partition(two)) == (one == two)
    assert packed == packed_partition(SourcePartition(dict(reversed(list(one.items())))))


@given(st.lists(st.tuples(PARTITIONS, st.binary(max_size=3) | st.none()), max_size=20))
def test_an_index_is_a_dictionary(writes: list[tuple[SourcePartition, bytes | None]]):
    """Of what comes back from the topic; for partitions of every kind, written and removed in any order."""
    index, expected = OffsetIndex(), dict[SourcePartition, SourceOffset]()
    for number, (partition, value) in enumerate(writes):
        offset = None if value is None else {"v": value.hex()}
        try:
            entries = index.entries_for("c", {partition: offset})
        except ValueError:
            continue
        for place, (key, each) in enumerate(entries, 10 * number):
            index.apply(key, each, at(place))
        (stored,) = (json.loads(entries[0][0])[1],)
        expected.pop(SourcePartition(stored), None)
        if offset is not None:
            expected[SourcePartition(stored)] = offset
        if number % 3 == 0:
            index.replayed(1)

    known = index.known("c")
    assert (len(expected), expected) == (len(known), dict(known.items()))
    assert expected == known
    assert list(known) == [partition for partition, _ in known.items()]
    assert all(known[each] == offset for each, offset in expected.items())


def test_a_snapshot_does_not_change():
    """Changes come with the next one; that of another time is equal as long as all offsets are."""
    index = index_of(FILES)
    before = index.known("c")
    index.apply(b'["c",{"filename":"a"}]', b'{"n":"a"}', at(10))
    assert before == index.known("c")
    index.apply(b'["c",{"filename":"a"}]', b'{"n":2}', at(11))

    assert before != index.known("c")
    assert FILES == before
    assert before is not index.known("c") is index.known("c")


def test_those_of_some_names_are_found_without_the_others():
    """Packed and not packed, and in a dictionary as well."""
    index = index_of({**FILES, RANGE: {"n": "r"}})
    index.apply(b'["c", {"filename": "c"}]', b'{"n":"c"}', at(10))
    known = index.known("c")

    expected = {**FILES, SourcePartition(filename="c"): {"n": "c"}}
    for each in (known, dict(known)):
        assert expected == of_names(each, {"filename"})
        assert {RANGE: {"n": "r"}} == of_names(each, {"from", "to", "filename"})
        assert {} == of_names(each, {"other"})


def test_a_million_entries_would_fit():
    """An entry takes little more than its own text, and no Python object."""
    index = index_of({SourcePartition(filename=f"{n:050}"): {"n": n} for n in range(1000)})
    assert {} == index._forms["c"]
    (table,) = index._tables["c"].values()

    assert 1000 == len(table)
    assert sum(map(len, table.buckets)) < 1000 * 100


def test_what_is_alone_again_is_packed_again():
    """A tombstone, or bytes of others, make a source partition special only for a while."""
    index = index_of(FILES)
    theirs = b'["c", {"filename": "a"}]'
    index.apply(theirs, b'{"n":"a"}', at(10))
    assert [SourcePartition(filename="a")] == list(index._forms["c"])
    for number, (key, value) in enumerate(
        index.entries_for("c", index.differently_encoded("c")), 11
    ):
        index.apply(key, value, at(number))
    for _ in range(2):
        index.replayed(1)

    assert {} == index._forms["c"]
    assert FILES == index.known("c")


def test_names_in_one_bucket_are_found_in_both_orders():
    """Java's map keeps them as they came; whoever stores the other order removes the first."""
    ours, others = SourcePartition({"Aa": 1, "BB": 2}), SourcePartition({"BB": 2, "Aa": 1})
    index = index_of({ours: {"n": 1}})

    assert {others: {"n": 1}} == index.known("c")
    tombstone = (b'["c",{"Aa":1,"BB":2}]', None)
    assert tombstone == index.entries_for("c", {others: {"n": 2}})[1]


def test_what_equality_and_bytes_see_differently_is_not_packed():
    """Zeros are equal and have two texts; infinity has the text of a string."""
    for each in (0.0, -0.0, float("inf"), b"a", "\ud800"):
        assert packed_partition(SourcePartition(n=each)) is None


def test_offsets_in_other_encodings_are_kept():
    """JSON may come as UTF-16, in which all bytes may be."""
    index = index_of(FILES)
    text = "\ufdfd\uffff\ufefe"
    value = json.dumps({"o": text}, ensure_ascii=False).encode("utf-16-le")
    index.apply(b'["c",{"filename":"a"}]', value, at(10))

    assert {"o": text} == index.known("c")[SourcePartition(filename="a")]
