"""Plain records into batches and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connect.errors import RecordError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import Header, SourceRecord
from headrace.connect.schema import INT32, INT64, STRING, Schema
from headrace.task.batching import batches_of
from headrace.task.plain_records import plain_row

offset_values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)
)
records = st.builds(
    SourceRecord,
    topic=st.sampled_from(["a", "b"]),
    value=st.one_of(st.none(), st.text(), st.binary(), st.integers(-5, 5), st.booleans()),
    source_partition=st.sampled_from([SourcePartition(f=1), SourcePartition(f=2)]),
    source_offset=st.one_of(
        st.none(), st.dictionaries(st.sampled_from(["p", "q"]), offset_values, max_size=2)
    ),
    key=st.one_of(st.none(), st.text(max_size=3)),
    headers=st.one_of(st.just(()), st.just((Header("h", "v"),))),
    timestamp=st.one_of(st.none(), st.integers(0, 2**40)),
    partition=st.one_of(st.none(), st.integers(0, 3)),
)


@settings(deadline=None)
@given(st.lists(records, max_size=30))
def test_nothing_changes_on_the_way(given_records: list[SourceRecord]) -> None:
    """Batches hold the same records in the same order, whatever those are."""
    back = [
        plain_row(batch, row) for batch, _ in batches_of(given_records) for row in range(len(batch))
    ]

    assert given_records == back


def test_neighbours_that_differ_in_their_positions_only_share_a_batch() -> None:
    """That is what makes plain records fast."""
    rows = [
        SourceRecord(
            topic="t",
            value=str(n),
            source_partition=SourcePartition(f="x"),
            source_offset={"position": n, "file": "x"},
        )
        for n in range(100)
    ]

    (batch, originals), *others = batches_of(rows)

    assert [] == others
    assert rows == originals
    assert {"position": 99, "file": "x"} == batch.offset_at(-1)


def test_mappings_and_lists_become_json_documents() -> None:
    """Schemaless values of a connector's own."""
    row = SourceRecord(
        topic="t",
        value={"é": [1, None]},
        source_partition=SourcePartition(f="x"),
        source_offset=None,
    )

    ((batch, _),) = batches_of([row])

    assert ['{"é":[1,null]}'] == batch.values.storage.to_pylist()


@pytest.mark.parametrize(("schema", "value"), [(INT32, "seven"), (STRING, 7), (INT32, 2**40)])
def test_a_value_that_does_not_fit_its_schema_is_an_error_of_the_record(
    schema: object, value: object
) -> None:
    """It names the type, and nothing is cut or converted."""
    row = SourceRecord(
        topic="t",
        value=value,
        value_schema=schema,  # type: ignore[arg-type]
        source_partition=SourcePartition(f="x"),
        source_offset=None,
    )

    with pytest.raises(RecordError, match="does not fit"):
        list(batches_of([row]))


def row_at(position: int, value: object, schema: Schema | None) -> SourceRecord:
    """A record of the partition ``f=x``."""
    return SourceRecord(
        topic="t",
        value=value,
        value_schema=schema,
        source_partition=SourcePartition(f="x"),
        source_offset={"position": position},
    )


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (INT64, 1, 2**70),
        (INT64, 1, "one"),
        (STRING, "a", 1),
        (None, 1, 2**70),
        # Each would fit alone.
        (None, -1, 2**63),
    ],
)
def test_the_first_bad_record_is_named(schema: Schema | None, good: object, bad: object) -> None:
    """By its source partition and offset, after all before it was returned."""
    rows = [row_at(n, bad if n in (5, 7) else good, schema) for n in range(10)]
    batches = batches_of(rows)

    assert rows[:5] == next(batches)[1]
    with pytest.raises(RecordError, match="does not fit") as caught:
        next(batches)

    assert "f x, at source offset position 5: " in str(caught.value)


@pytest.mark.parametrize(
    ("offset", "timestamp", "words"),
    [({"p": 2**70}, None, "source offset 'p'"), ({"p": 1}, 2**70, "timestamp")],
)
def test_numbers_around_the_value_are_checked_too(
    offset: dict[str, int], timestamp: int | None, words: str
) -> None:
    """They are errors of the record."""
    row = SourceRecord(
        topic="t",
        value="v",
        source_partition=SourcePartition(f="x"),
        source_offset=offset,
        timestamp=timestamp,
    )

    with pytest.raises(RecordError, match=f"The {words} does not fit 64 bits") as caught:
        list(batches_of([row]))

    assert "f x, at source offset" in str(caught.value)
