"""The check that both ways of a transformation agree: record by record, and all rows of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema
from headrace.connect.transforming import ColumnarTransform
from headrace.task.plain_records import plain_row


def check_both_ways(transform: ColumnarTransform, batch: SourceBatch) -> bool:
    """Fails unless *batch* becomes what each of its rows becomes, or they have to go one by one; whether it went."""
    before = repr(rows_of([batch]))
    went = _check(transform, batch)
    if len(batch) > 1:
        # Columns that begin within others, too.
        _check(transform, batch.slice(1, len(batch) - 1))
    assert before == repr(rows_of([batch])), "the batch itself has changed"
    return went


def rows_of(batches: Sequence[SourceBatch]) -> list[SourceRecord]:
    """All rows, as records."""
    return [plain_row(batch, row) for batch in batches for row in range(len(batch))]


def lacks(schema: Schema, structs: pa.Array) -> bool:
    """Whether something is null in *structs* that has to be there."""
    held = zip(schema.fields, structs.flatten(), strict=True)
    return any(
        column.null_count > structs.null_count and not field.schema.optional
        for field, column in held
    )


def _check(transform: ColumnarTransform, batch: SourceBatch) -> bool:
    try:
        expected = [_sendable(transform.apply(row)) for row in rows_of([batch])]
    except RecordError:
        assert _refused(transform, batch)
        return False
    changed = transform.apply_batch(batch)
    if changed is None:
        return False
    assert sum(map(len, changed)) == len(batch)
    rows = iter(expected)
    for each in changed:
        each.values.validate(full=True)
        same = [next(rows) for _ in range(len(each))]
        assert _columns(same) == _shown(each)
        assert [_beside(row) for row in same] == [_beside(row) for row in rows_of([each])]
    return True


def _sendable(changed: SourceRecord | None) -> SourceRecord:
    """*changed*, which fits a column; raises :class:`~headrace.connect.errors.RecordError` otherwise."""
    assert changed is not None
    _columns([changed])
    return changed


def _refused(transform: ColumnarTransform, batch: SourceBatch) -> bool:
    try:
        return transform.apply_batch(batch) is None
    except RecordError:
        return True


def _beside(row: SourceRecord) -> str:
    """What a record has beside its key and its value, their schemas included."""
    place = (row.topic, row.partition, row.timestamp, row.source_partition, row.source_offset)
    return repr((place, row.headers, row.key_schema, row.value_schema))


def _columns(rows: Sequence[SourceRecord]) -> str:
    """*rows* as the columns that they would be sent as; text, in which each number is like itself only."""
    first = rows[0]
    values = column_of(first.value_schema, [row.value for row in rows])
    keys = column_of(first.key_schema, [row.key for row in rows])
    return _told(values, keys)


def _shown(batch: SourceBatch) -> str:
    keys = pa.nulls(len(batch)) if batch.keys is None else batch.keys
    return _told(batch.values, keys)


def _told(values: pa.Array, keys: pa.Array) -> str:
    return repr([(str(each.type), each.to_pylist()) for each in (values, keys)])
