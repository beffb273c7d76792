"""The types of a connector's records at its SQL step, determined before a record is read; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import RecordSchemas
from headrace.connect.schema import JSON_DOCUMENT, Schema, arrow_type
from headrace.task.chain import Chain, make_stage
from headrace.task.connector_spec import ErrorPolicy, StageChoice
from headrace.task.error_handling import RetryWithBackoff
from headrace.task.frames import Records
from headrace.task.slot_report import Progress
from headrace.task.sql.spark_types import spark_type
from headrace.task.sql.step import FrameTypes

_NEVER_READ = SourcePartition(example=True)
_EXAMPLES: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pa.types.is_boolean, False),
    (pa.types.is_integer, 0),
    (pa.types.is_floating, 0.0),
    (pa.types.is_string, ""),
    (pa.types.is_binary, b""),
    (pa.types.is_decimal, Decimal(0)),
    (pa.types.is_date, date(1970, 1, 1)),
    (pa.types.is_time, time()),
    (pa.types.is_timestamp, datetime(1970, 1, 1, tzinfo=UTC)),
    (pa.types.is_list, []),
    (pa.types.is_map, []),
)


def planned_types(schemas: RecordSchemas | None, before: Sequence[StageChoice]) -> FrameTypes:
    """The types of records of *schemas* after the transformations *before*, determined with an example record.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when the transformations drop or refuse all examples, and
    what a transformation raises for invalid settings.
    """
    known = schemas or RecordSchemas()
    if not before:
        return _types(next(_examples(known)))
    chain = Chain(
        [make_stage(each) for each in before],
        retrying=RetryWithBackoff(
            ErrorPolicy(), Progress(), wait=lambda *_: None, ending=lambda: True
        ),
        tolerates=True,
    )
    for example in _examples(known):
        for frame in chain.frames([Records(example)]):
            if isinstance(frame, Records):
                return _types(frame.batch)
    names = ", ".join(each.transform.class_name for each in before)
    raise TaskFailedError(
        f"The type of records after {names} is unknown, but SparkSql needs it before it starts: an example record was "
        "dropped or refused. Put SparkSql before these transformations, or express them in SQL."
    )


def _types(batch: SourceBatch) -> FrameTypes:
    for noun, column in (("value", batch.values), ("key", batch.keys)):
        if column is not None:
            _refuse(column.type, noun)
    value, required = spark_type(batch.values.type), spark_type(batch.values.type, as_required=True)
    return FrameTypes(
        value=value,
        required=None if required == value else required,
        key=pa.utf8() if batch.keys is None else spark_type(batch.keys.type),
    )


def _refuse(kind: pa.DataType, path: str) -> None:
    """Raise for the first decimal in *kind* that Spark has no type for; *path* is that of *kind*."""
    if pa.types.is_decimal(kind) and not 0 <= kind.scale <= kind.precision:
        raise TaskFailedError(
            f"{path} is a Decimal of scale {kind.scale}, but Spark supports scales from 0 to {kind.precision}. "
            "Before SparkSql, remove it with ReplaceField or convert it to another number type with Cast."
        )
    for each in (kind.field(index) for index in range(kind.num_fields)):
        _refuse(each.type, f"{path}.{each.name}")


def _examples(schemas: RecordSchemas) -> Iterator[SourceBatch]:
    values = [_column(schemas.value)]
    if schemas.value is None:
        # A document comes first: most transformations work on fields.
        values.insert(0, pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array(["{}"])))
    for value in values:
        yield SourceBatch(
            topic="example",
            values=value,
            value_schema=schemas.value,
            keys=_column(schemas.key),
            key_schema=schemas.key,
            source_partition=_NEVER_READ,
            offsets=None,
        )


def _column(schema: Schema | None) -> pa.Array:
    return column_of(schema, [_example(pa.utf8() if schema is None else arrow_type(schema))])


def _example(kind: pa.DataType) -> Any:  # noqa: ANN401 (of that type)
    if pa.types.is_struct(kind):
        return {each.name: _example(each.type) for each in kind}
    return next((example for belongs, example in _EXAMPLES if belongs(kind)), None)
