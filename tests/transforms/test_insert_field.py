"""InsertField, as Kafka Connect does it."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import ConfigError, RecordError
from headrace.connect.json_document import JSON_NULL
from headrace.connect.record import SourceRecord
from headrace.connect.schema import (
    INT32,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
)
from headrace.transforms.catalogue import make_transform
from headrace.transforms.insert_field import InsertFieldConfig
from transforms.applied import made
from transforms.both_ways import check_both_ways, lacks
from transforms.generated import batches, record

STRUCT = Schema(
    type=SchemaType.STRUCT,
    name="n",
    version=3,
    doc="d",
    parameters={"x": "y"},
    optional=True,
    fields=(
        Field("a", Schema(type=SchemaType.INT32, optional=True, default=7, doc="q")),
        Field("b", OPTIONAL_STRING),
    ),
)
VALUE = {"a": None, "b": "bb"}
AT_FIVE = dt.datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=dt.UTC)


def inserted(before: SourceRecord, **config: str) -> SourceRecord:
    """*before* behind an InsertField that is configured so."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    made = make_transform("InsertField$Value", settings)
    after = made.apply(before)
    assert after is not None
    return after


def test_fields_are_put_after_the_others_in_a_fixed_order() -> None:
    """Topic, partition, timestamp, static; the struct loses that it is optional, as in Kafka Connect."""
    after = inserted(
        record(VALUE, STRUCT, partition=1, timestamp=5),
        static_field="s",
        static_value="sv",
        timestamp_field="ts!",
        partition_field="p?",
        topic_field="t!",
    )

    assert {"a": 7, "b": "bb", "t": "top", "p": 1, "ts": AT_FIVE, "s": "sv"} == after.value
    assert after.value_schema == Schema(
        type=SchemaType.STRUCT,
        name="n",
        version=3,
        doc="d",
        parameters={"x": "y"},
        fields=(
            *STRUCT.fields,
            Field("t", STRING),
            Field("p", INT32.as_optional()),
            Field("ts", TIMESTAMP),
            Field("s", OPTIONAL_STRING),
        ),
    )


def test_a_null_stays_null_when_defaults_are_not_wanted() -> None:
    """The field itself keeps its default."""
    after = inserted(record(VALUE, STRUCT), topic_field="t", replace_null_with_default="false")

    assert {"a": None, "b": "bb", "t": "top"} == after.value


@pytest.mark.parametrize("key", ["partition_field", "timestamp_field"])
def test_what_a_record_does_not_have_is_null(key: str) -> None:
    """Whether its field is required or not, as in Kafka Connect."""
    assert {"a": 7, "b": "bb", "x": None} == inserted(record(VALUE, STRUCT), **{key: "x!"}).value


def test_without_schema_entries_are_replaced_and_times_are_numbers() -> None:
    """What the record does not have is left out."""
    before = record({"a": 1}, timestamp=9)
    after = inserted(before, topic_field="a", partition_field="p!", timestamp_field="t!")

    assert {"a": "top", "t": 9} == after.value
    assert {"a": 1} == before.value


@pytest.mark.parametrize("schema", [None, STRUCT])
def test_a_record_without_value_stays_as_it_is(schema: Schema | None) -> None:
    """Its schema, too."""
    before = record(None, schema)

    assert before is inserted(before, topic_field="t")


def test_the_document_null_counts_as_null() -> None:
    """It is null for Kafka Connect, whose converters know no other."""
    before = record(JSON_NULL)

    assert before is inserted(before, topic_field="t")


@pytest.mark.parametrize(
    ("schema", "value", "field", "reported"),
    [
        (
            STRING,
            "x",
            "t",
            "Only Struct objects supported for [field insertion], found: java.lang.String",
        ),
        (
            None,
            "x",
            "t",
            "Only Map objects supported in absence of schema for [field insertion], found: java.lang.String",
        ),
        (STRUCT, VALUE, "a", "Cannot create field because of field name duplication a"),
        (STRUCT, VALUE, "!", "fieldName cannot be null."),
        (
            Schema(type=SchemaType.STRUCT, fields=(Field("a", INT32),)),
            {"a": None},
            "t",
            'Invalid value: null used for required field: "a", schema type: INT32',
        ),
    ],
)
def test_what_cannot_be_inserted_into_is_refused(
    schema: Schema | None, value: object, field: str, reported: str
) -> None:
    """In Kafka Connect's words."""
    with pytest.raises(RecordError) as refused:
        inserted(record(value, schema), topic_field=field)

    assert reported == refused.value.reason


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, ("topic.field", "No field insertion configured")),
        (
            {"static.field": "s"},
            (
                "static.value",
                "Invalid value null for configuration static.value: No value specified for static field: s",
            ),
        ),
        (
            {"offset.field": "o"},
            (
                "offset.field",
                (
                    "Invalid value o for configuration offset.field: Only SinkRecord supported for"
                    " [field insertion]: a source's records have no offset in Kafka yet"
                ),
            ),
        ),
    ],
)
def test_settings_that_cannot_work_are_reported(
    config: dict[str, str], problem: tuple[str, str]
) -> None:
    """Before a connector starts."""
    assert (problem,) == InsertFieldConfig.problems(config)
    with pytest.raises(ConfigError):
        make_transform("InsertField$Key", config)


@given(
    batch=batches(),
    side=st.sampled_from(["Key", "Value"]),
    names=st.dictionaries(
        st.sampled_from(["topic.field", "partition.field", "timestamp.field", "static.field"]),
        st.sampled_from(["e", "f!", "g?", "a", "!"]),
        min_size=1,
    ),
    defaults=st.sampled_from(["true", "false"]),
)
def test_batches_become_what_their_rows_become(
    batch: SourceBatch, side: str, names: dict[str, str], defaults: str
) -> None:
    """At once or one by one, also where rows are null."""
    config = {**names, "static.value": "sv", "replace.null.with.default": defaults}

    at_once = check_both_ways(made(f"InsertField${side}", config), batch)

    field_names = [name.rstrip("!?") for name in names.values()]
    clear = not {"a", ""} & set(field_names) and len(set(field_names)) == len(field_names)
    schema = batch.key_schema if side == "Key" else batch.value_schema
    column = batch.keys if side == "Key" else batch.values
    assert schema is not None
    whole = column is None or not lacks(schema, column)
    assert at_once or not (clear and whole)
