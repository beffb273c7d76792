"""InsertHeader, DropHeaders and HeaderFrom, as Kafka Connect does them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config
from headrace.connect.errors import RecordError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.json_document import JSON_NULL
from headrace.connect.record import Header, Headers
from headrace.connect.schema import OPTIONAL_STRING, STRING, Field, Schema, SchemaType
from headrace.converters.headers import SimpleHeaderConverter
from headrace.transforms.catalogue import make_transform
from headrace.transforms.drop_headers import DropHeadersConfig
from headrace.transforms.header_from import HeaderFrom, HeaderFromConfig
from headrace.transforms.insert_header import InsertHeaderConfig
from transforms.applied import made
from transforms.both_ways import check_both_ways, lacks, rows_of
from transforms.generated import NAMES, batch_of, batches, record

A = Schema(type=SchemaType.INT32, optional=True, default=7, doc="q")
STRUCT = Schema(
    type=SchemaType.STRUCT,
    name="n",
    version=3,
    optional=True,
    fields=(Field("a", A), Field("b", OPTIONAL_STRING)),
)
VALUE = {"a": None, "b": "bb"}
XYX: Headers = (Header("x", "1", STRING), Header("y", "2", STRING), Header("x", "3", STRING))


def from_value(operation: str, fields: str, headers: str, **others: str) -> HeaderFrom:
    """A HeaderFrom that is configured."""
    config = {"operation": operation, "fields": fields, "headers": headers, **others}
    made = make_transform("HeaderFrom$Value", config)
    assert isinstance(made, HeaderFrom)
    return made


def columns(batch: SourceBatch) -> SourceBatch:
    """*batch* with its headers, which are the same in all rows, as columns."""
    if batch.headers is None:
        return batch
    same = [HeaderColumn(key=h.key, value=h.value, schema=h.schema) for h in batch.headers[0]]
    return dataclasses.replace(batch, headers=HeaderColumns(same, rows=len(batch)))


def test_an_inserted_header_comes_last() -> None:
    """Also where there is one of its name; what looks like a number is one."""
    made = make_transform("InsertHeader", {"header": "x", "value.literal": "1"})
    after = made.apply(record("v", headers=XYX))

    assert after is not None
    assert (*XYX, Header("x", 1, Schema(type=SchemaType.INT8))) == after.headers


def test_all_headers_of_a_name_are_dropped() -> None:
    """The others stay in order."""
    made = make_transform("DropHeaders", {"headers": "x,z"})
    after = made.apply(record("v", headers=XYX))

    assert after is not None
    assert XYX[1:2] == after.headers


def test_moved_fields_leave_the_struct() -> None:
    """Headers have the schemas of their fields; a null counts as the field's default."""
    after = from_value("move", "a,b", "h1,h2").apply(record(VALUE, STRUCT, headers=XYX))

    assert (*XYX, Header("h1", 7, A), Header("h2", "bb", OPTIONAL_STRING)) == after.headers
    assert {} == after.value
    assert Schema(type=SchemaType.STRUCT, name="n", version=3) == after.value_schema


def test_copied_fields_stay() -> None:
    """The value does not change at all; and a null stays null where defaults are not wanted."""
    made = from_value("copy", "a,a", "h,i", **{"replace.null.with.default": "false"})
    after = made.apply(record(VALUE, STRUCT))

    assert (Header("h", None, A), Header("i", None, A)) == after.headers
    assert (STRUCT, VALUE) == (after.value_schema, after.value)


@pytest.mark.parametrize(("operation", "left"), [("move", {}), ("copy", {"a": 1})])
def test_without_schema_a_missing_field_is_a_header_of_null(
    operation: str, left: dict[str, int]
) -> None:
    """Two headers may have one name."""
    before = record({"a": 1})
    after = from_value(operation, "a,z", "h,h").apply(before)

    assert (Header("h", 1), Header("h", None)) == after.headers
    assert left == after.value
    assert {"a": 1} == before.value


@pytest.mark.parametrize(
    ("schema", "value", "reported"),
    [
        (STRUCT, VALUE, "Unknown field: zz"),
        (
            STRUCT,
            None,
            "Only Struct objects supported for [header copy], found: null",
        ),
        (
            None,
            None,
            "Only Map objects supported in absence of schema for [header copy], found: null",
        ),
        (
            None,
            JSON_NULL,
            "Only Map objects supported in absence of schema for [header copy], found: null",
        ),
        (STRING, "x", "Only Struct objects supported for [header copy], found: java.lang.String"),
    ],
)
def test_what_has_no_fields_is_refused(schema: Schema | None, value: object, reported: str) -> None:
    """Nulls, too, unlike in other transformations."""
    with pytest.raises(RecordError) as refused:
        from_value("copy", "a,zz", "h,i").apply(record(value, schema))

    assert reported == refused.value.reason


def test_a_null_is_no_header_where_its_schema_has_to_have_a_value() -> None:
    """Its default would be one, but is not to be put."""
    schema = Schema(
        type=SchemaType.STRUCT, fields=(Field("a", dataclasses.replace(A, optional=False)),)
    )
    copying = from_value("copy", "a", "h", **{"replace.null.with.default": "false"})

    with pytest.raises(RecordError) as refused:
        copying.apply(record({"a": None}, schema))

    assert "A null value requires an optional schema but was Schema{INT32}" == refused.value.reason
    assert not check_both_ways(copying, batch_of([{"a": None}], schema))


@pytest.mark.parametrize(
    ("kind", "config", "key", "reported"),
    [
        (
            DropHeadersConfig,
            {"headers": ""},
            "headers",
            "Configuration 'headers' must not be empty. Valid values include: any non-empty value",
        ),
        (
            DropHeadersConfig,
            {"headers": "x,,y"},
            "headers",
            "Configuration 'headers' values must not be empty.",
        ),
        (
            HeaderFromConfig,
            {"fields": "a", "headers": "h,i", "operation": "move"},
            "fields",
            "'fields' config must have the same number of elements as 'headers' config.",
        ),
        (
            HeaderFromConfig,
            {"fields": "a", "headers": "h", "operation": "MOVE"},
            "operation",
            "Invalid value MOVE for configuration operation: String must be one of: move, copy",
        ),
        (
            InsertHeaderConfig,
            {"header": "h", "value.literal": "99:99:99.999Z"},
            "value.literal",
            (
                "Invalid value 99:99:99.999Z for configuration value.literal: Kafka Connect would infer a"
                " value that has no schema: 99:99:99.999Z is no time of a day"
            ),
        ),
    ],
)
def test_settings_that_cannot_work_are_reported(
    kind: type[Config], config: dict[str, str], key: str, reported: str
) -> None:
    """Before a connector starts."""
    assert ((key, reported),) == kind.problems(config)


def test_headers_of_a_batch_stay_columns() -> None:
    """Fields become columns of headers without a look at any row."""
    (changed,) = from_value("move", "b", "h").apply_batch(batch_of([VALUE, VALUE], STRUCT)) or ()

    assert isinstance(changed.headers, HeaderColumns)
    assert ["bb", "bb"] == [each.headers[0].value for each in rows_of([changed])]


@given(
    batch=batches(),
    as_columns=st.booleans(),
    transform=st.sampled_from(
        [
            ("InsertHeader", {"header": "h", "value.literal": "[1,2]"}),
            ("DropHeaders", {"headers": "h"}),
            ("DropHeaders", {"headers": "h,i"}),
            ("RegexRouter", {"regex": "(t).*", "replacement": "$1"}),
            ("RegexRouter", {"regex": "t", "replacement": "x"}),
        ]
    ),
)
def test_batches_become_what_their_rows_become(
    *, batch: SourceBatch, as_columns: bool, transform: tuple[str, dict[str, str]]
) -> None:
    """Whether their headers are columns or not."""
    assert check_both_ways(made(*transform), columns(batch) if as_columns else batch)


@given(
    batch=batches(),
    as_columns=st.booleans(),
    side=st.sampled_from(["Key", "Value"]),
    fields=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(",".join),
    operation=st.sampled_from(["move", "copy"]),
    defaults=st.sampled_from(["true", "false"]),
)
def test_fields_of_batches_become_the_headers_that_those_of_rows_become(
    *, batch: SourceBatch, as_columns: bool, side: str, fields: str, operation: str, defaults: str
) -> None:
    """Where every row has them; otherwise rows go one by one."""
    config = {
        "fields": fields,
        "headers": ",".join(f"h{n}" for n, _ in enumerate(fields.split(","))),
        "operation": operation,
        "replace.null.with.default": defaults,
    }
    at_once = check_both_ways(
        made(f"HeaderFrom${side}", config), columns(batch) if as_columns else batch
    )

    schema = batch.key_schema if side == "Key" else batch.value_schema
    column = batch.keys if side == "Key" else batch.values
    assert schema is not None
    there = set(fields.split(",")) <= {each.name for each in schema.fields}
    has_structs = there and column is not None and not column.null_count
    assert has_structs or not at_once
    if has_structs and not lacks(schema, column):
        assert at_once


def test_a_map_that_became_a_header_is_written_as_a_map() -> None:
    """At once as well as one by one."""
    field = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=STRING)
    schema = Schema(type=SchemaType.STRUCT, fields=(Field("m", field),))
    batch = batch_of([{"m": {"k": "v"}}], schema)
    (changed,) = from_value("move", "m", "h").apply_batch(batch) or ()
    assert isinstance(changed.headers, HeaderColumns)
    (column,) = changed.headers.columns
    converter = SimpleHeaderConverter()

    written = converter.encode_headers("t", "h", column.schema, column.values)

    assert [b'{"k":"v"}'] == written.to_pylist()
    assert b'{"k":"v"}' == converter.encode_header("t", column.at(0))
