"""Batches of generated schemas and values, and the judgement that both ways of a transformation do the same."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.record import Header, SourceRecord
from headrace.connect.schema import (
    DATE,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    decimal,
)
from headrace.connect.transforming import ColumnarTransform
from headrace.slot.batching import batches_of
from headrace.slot.plain_rows import plain_row
from headrace.transforms.catalogue import make_transform

FIELDS = ("a", "b", "c", "d")
_UTC = st.just(dt.UTC)
# What Python's datetimes and Java's dates agree about without their old calendar.
FROM, TO = dt.datetime(1600, 1, 1), dt.datetime(9998, 12, 31)  # noqa: DTZ001 (hypothesis adds the zone)


def _millis(stamp: dt.datetime) -> dt.datetime:
    return stamp.replace(microsecond=stamp.microsecond // 1000 * 1000)


def _time(millis: int) -> dt.time:
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=millis)).time()


_INT64 = st.integers(-(2**63), 2**63 - 1)
SCALARS: Mapping[str, tuple[Schema, st.SearchStrategy[Any]]] = {
    "string": (STRING, st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
    "int8": (Schema(type=SchemaType.INT8), st.integers(-128, 127)),
    "int32": (INT32, st.integers(-(2**31), 2**31 - 1)),
    "int64": (INT64, _INT64),
    "float": (
        Schema(type=SchemaType.FLOAT32),
        st.floats(width=32, allow_nan=False, allow_infinity=False),
    ),
    "bytes": (Schema(type=SchemaType.BYTES), st.binary(max_size=4)),
    "boolean": (Schema(type=SchemaType.BOOLEAN), st.booleans()),
    "date": (DATE, st.dates(FROM.date(), TO.date())),
    "time": (TIME, st.integers(0, 86_399_999).map(_time)),
    "timestamp": (TIMESTAMP, st.datetimes(FROM, TO, timezones=_UTC).map(_millis)),
    "decimal": (decimal(2), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2))),
}


@st.composite
def typed(draw: st.DrawFn, depth: int = 1) -> tuple[Schema, st.SearchStrategy[Any]]:
    """A schema, and a strategy of values of it."""
    kinds = [*SCALARS, *(("array", "map", "struct") if depth else ())]
    kind = draw(st.sampled_from(kinds))
    if kind == "array":
        element, values = draw(typed(depth=0))
        whole = Schema(type=SchemaType.ARRAY, value_schema=element), st.lists(values, max_size=2)
    elif kind == "map":
        element, values = draw(typed(depth=0))
        schema = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=element)
        whole = schema, st.dictionaries(st.sampled_from("xyz"), values, max_size=2)
    elif kind == "struct":
        whole = draw(structs(depth=depth - 1))
    else:
        whole = SCALARS[kind]
    return draw(_varied(*whole))


@st.composite
def _varied(
    draw: st.DrawFn, schema: Schema, values: st.SearchStrategy[Any]
) -> tuple[Schema, st.SearchStrategy[Any]]:
    """The same, optional or not, with a default or without."""
    if draw(st.booleans()):
        return schema, values
    default = draw(st.none() | values)
    return replace(schema, optional=True, default=default), st.none() | values


@st.composite
def structs(draw: st.DrawFn, depth: int = 1) -> tuple[Schema, st.SearchStrategy[Any]]:
    """The schema of a struct, and a strategy of values of it."""
    names = draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4, unique=True))
    made = {name: draw(typed(depth=depth)) for name in names}
    schema = Schema(
        type=SchemaType.STRUCT,
        fields=tuple(Field(name, each) for name, (each, _) in made.items()),
        name=draw(st.none() | st.just("named")),
        version=draw(st.none() | st.just(2)),
        doc=draw(st.none() | st.just("said")),
        parameters=draw(st.sampled_from([{}, {"p": "q"}])),
    )
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in made.items()})


@st.composite
def batches(
    draw: st.DrawFn,
    operands: st.SearchStrategy[tuple[Schema, st.SearchStrategy[Any]]] | None = None,
) -> SourceBatch:
    """A batch of one to six rows with a value of a generated schema, and the same as its key."""
    schema, values = draw(
        structs().flatmap(lambda made: _varied(*made)) if operands is None else operands
    )
    count = draw(st.integers(1, 6))
    stamped = draw(st.booleans())
    stamps = st.integers(-1, 4_000_000_000_000) if stamped else st.none()
    partition = draw(st.none() | st.just(3))
    headers = draw(st.sampled_from([(), (Header("h", "v", STRING), Header("i", 5, INT64))]))
    records = [
        SourceRecord(
            topic="topic",
            partition=partition,
            source_partition={"from": "here"},
            source_offset={"at": row},
            value_schema=schema,
            value=draw(values),
            key_schema=schema,
            key=draw(values),
            timestamp=draw(stamps),
            headers=headers,
        )
        for row in range(count)
    ]
    ((batch, _),) = batches_of(records)
    if stamped and draw(st.booleans()):
        batch = replace(batch, timestamps=draw(stamps))
    return batch.slice(draw(st.integers(0, count - 1)), count)


def rows_of(batches: Sequence[SourceBatch]) -> list[SourceRecord]:
    """All rows, as records."""
    return [plain_row(batch, row) for batch in batches for row in range(len(batch))]


def assert_both_ways_agree(name: str, config: Mapping[str, str], batch: SourceBatch) -> bool:
    """Assert that *batch* at once becomes what its rows become one by one; whether it could go at once."""
    before = rows_of([batch])
    at_once = _at_once(name, config, batch)
    assert before == rows_of([batch]), "the batch itself has changed"
    if at_once is None:
        return False
    single = make_transform(name, config)
    assert [single.apply(each) for each in before] == rows_of(at_once)
    assert before == rows_of([batch]), "the rows themselves have changed"
    for each in at_once:
        each.values.validate(full=True)
    return True


def _at_once(
    name: str, config: Mapping[str, str], batch: SourceBatch
) -> Sequence[SourceBatch] | None:
    """What becomes of *batch*; ``None`` where its rows have to go one by one, as they do after an error."""
    made = make_transform(name, config)
    assert isinstance(made, ColumnarTransform)
    try:
        return made.apply_batch(batch)
    except RecordError:
        return None


def batch_of(schema: Schema | None, values: Sequence[Any], **others: Any) -> SourceBatch:  # noqa: ANN401 (attributes of records)
    """A batch of *values*."""
    records = [record(schema, each, **others) for each in values]
    ((batch, _),) = batches_of(records)
    return batch


def record(schema: Schema | None, value: object, **others: Any) -> SourceRecord:  # noqa: ANN401 (attributes of records)
    """A record of the topic ``top`` without a place."""
    return SourceRecord(
        topic="top",
        source_partition={},
        source_offset=None,
        value_schema=schema,
        value=value,
        **others,
    )
