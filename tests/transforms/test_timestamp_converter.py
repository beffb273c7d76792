"""TimestampConverter, as Kafka Connect does it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.json_document import JSON_NULL
from headrace.connect.schema import (
    BOOLEAN,
    DATE,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
)
from headrace.transforms.catalogue import make_transform
from headrace.transforms.timestamp_converter import TimestampConverter, TimestampConverterConfig
from transforms.applied import made
from transforms.both_ways import check_both_ways
from transforms.generated import LEAVES, NAMES, batch_of, batches, record

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
AT_FIVE = EPOCH + dt.timedelta(milliseconds=5)
STAMP = Schema(
    type=SchemaType.INT64, name=TIMESTAMP.name, version=1, optional=True, doc="x", default=AT_FIVE
)
STRUCT = Schema(
    type=SchemaType.STRUCT,
    name="n",
    version=3,
    doc="d",
    parameters={"x": "y"},
    optional=True,
    fields=(
        Field("t", STAMP),
        Field("s", OPTIONAL_STRING),
        Field("a", Schema(type=SchemaType.INT32, optional=True, default=7)),
    ),
)
VALUE = {"t": None, "s": "2020-01-02", "a": None}


def before_epoch(millis: int) -> dt.datetime:
    """So many milliseconds before 1970."""
    return EPOCH - dt.timedelta(milliseconds=millis)


def converter(**config: str) -> TimestampConverter:
    """A converter that is configured."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    made = make_transform("TimestampConverter$Value", settings)
    assert isinstance(made, TimestampConverter)
    return made


def test_a_field_changes_its_schema_and_keeps_its_place() -> None:
    """It loses its default and doc, but not that it is optional; a null counts as the default that it had."""
    after = converter(field="t", target_type="unix").apply(record(VALUE, STRUCT))

    assert {"t": 5, "s": "2020-01-02", "a": 7} == after.value
    assert after.value_schema == replace(
        STRUCT, fields=(Field("t", INT64.as_optional()), *STRUCT.fields[1:])
    )


def test_a_null_stays_null_when_defaults_are_not_wanted() -> None:
    """In every field."""
    made = converter(field="t", target_type="unix", replace_null_with_default="false")

    assert VALUE == made.apply(record(VALUE, STRUCT)).value


def test_a_struct_that_is_null_gets_the_changed_schema() -> None:
    """Its default is converted as values are."""
    schema = Schema(
        type=SchemaType.STRUCT,
        optional=True,
        fields=(Field("t", TIMESTAMP),),
        default={"t": AT_FIVE},
    )
    after = converter(field="t", target_type="unix").apply(record(None, schema))

    assert after.value is None
    assert replace(schema, fields=(Field("t", INT64),), default={"t": 5}) == after.value_schema


@pytest.mark.parametrize(
    ("schema", "value", "config", "expected"),
    [
        (STAMP, before_epoch(1500), {"target.type": "unix", "unix.precision": "seconds"}, -1),
        (
            STAMP,
            before_epoch(1500),
            {"target.type": "unix", "unix.precision": "nanoseconds"},
            -1_500_000_000,
        ),
        (STAMP, before_epoch(1500), {"target.type": "Date"}, dt.date(1969, 12, 31)),
        (STAMP, before_epoch(1500), {"target.type": "Time"}, dt.time(23, 59, 58, 500_000)),
        (STAMP, before_epoch(1500), {"target.type": "string", "format": "yyyy"}, "1969"),
        (
            INT64,
            -1500,
            {"target.type": "Timestamp", "unix.precision": "seconds"},
            before_epoch(1_500_000),
        ),
        (INT64, -1500, {"target.type": "Timestamp"}, before_epoch(1500)),
        (
            INT64,
            -1500,
            {"target.type": "Timestamp", "unix.precision": "microseconds"},
            before_epoch(1),
        ),
        (INT64, -1500, {"target.type": "Timestamp", "unix.precision": "nanoseconds"}, EPOCH),
        (
            INT64,
            2**63 - 1,
            {"target.type": "unix", "unix.precision": "seconds"},
            (2**63 - 1) // 1000,
        ),
        (
            INT64,
            -(2**63),
            {"target.type": "unix", "unix.precision": "nanoseconds"},
            -9223372036854000000,
        ),
        (INT64, 1500, {"target.type": "unix", "unix.precision": "microseconds"}, 1000),
        (
            DATE,
            dt.date(1970, 1, 2),
            {"target.type": "string", "format": "yyyy-MM-dd HH"},
            "1970-01-02 00",
        ),
        (DATE, dt.date(1970, 1, 2), {"target.type": "unix"}, 86_400_000),
        (TIME, dt.time(1), {"target.type": "Timestamp"}, EPOCH + dt.timedelta(hours=1)),
        (TIME, dt.time(1), {"target.type": "Date"}, EPOCH.date()),
        (
            STRING,
            "2020-01-02",
            {"target.type": "Timestamp", "format": "yyyy-MM-dd"},
            dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
        ),
        (STAMP, None, {"target.type": "unix"}, None),
        (None, 5, {"target.type": "Timestamp"}, AT_FIVE),
        (None, "1970", {"target.type": "Timestamp", "format": "yyyy"}, EPOCH),
        (None, AT_FIVE, {"target.type": "unix"}, 5),
        (None, {"a": 1}, {"target.type": "string", "format": "yyyy", "field": "a"}, {"a": "1970"}),
        (None, {"a": None}, {"target.type": "unix", "field": "a"}, {"a": None}),
        (None, {}, {"target.type": "unix", "field": "a"}, {"a": None}),
        (None, None, {"target.type": "unix"}, None),
        (None, JSON_NULL, {"target.type": "unix", "field": "a"}, JSON_NULL),
    ],
)
def test_values_are_converted_as_java_does(
    schema: Schema | None, value: object, config: dict[str, str], expected: object
) -> None:
    """Digits below a unit are cut towards zero, also before 1970."""
    after = converter(**config).apply(record(value, schema))

    assert expected == after.value


@pytest.mark.parametrize(
    ("target", "schema"),
    [("string", STRING), ("unix", INT64), ("Date", DATE), ("Time", TIME), ("Timestamp", TIMESTAMP)],
)
def test_a_whole_value_is_optional_when_it_was(target: str, schema: Schema) -> None:
    """And has nothing else of the schema that it had."""
    made = converter(target_type=target, format="yyyy")

    assert schema.as_optional() == made.apply(record(AT_FIVE, STAMP)).value_schema
    assert schema == made.apply(record(AT_FIVE, TIMESTAMP)).value_schema


@pytest.mark.parametrize(
    ("schema", "value", "config", "reported"),
    [
        (
            STRUCT,
            VALUE,
            {"field": "s", "format": "yyyy/MM-dd"},
            "Could not parse timestamp: value (2020-01-02) does not match pattern (yyyy/MM-dd)",
        ),
        (
            STRUCT,
            VALUE,
            {"field": "s"},
            "Could not parse timestamp: no format is set for timestamps that are text",
        ),
        (
            STRUCT,
            VALUE,
            {"field": "a"},
            "Schema Schema{INT32} does not correspond to a known timestamp type format",
        ),
        (
            STRUCT,
            VALUE,
            {},
            "Schema Schema{n:STRUCT} does not correspond to a known timestamp type format",
        ),
        (
            STRING,
            "x",
            {"field": "a"},
            "Only Struct objects supported for [converting timestamp formats], found: java.lang.String",
        ),
        (
            None,
            "x",
            {"field": "a"},
            (
                "Only Map objects supported in absence of schema for [converting timestamp formats],"
                " found: java.lang.String"
            ),
        ),
        (
            None,
            True,
            {},
            "TimestampConverter does not support class java.lang.Boolean objects as timestamps",
        ),
        (
            INT64,
            2**62,
            {},
            "A timestamp lies outside the years 1 to 9999: ",
        ),
    ],
)
def test_what_is_no_time_is_refused(
    schema: Schema | None, value: object, config: dict[str, str], reported: str
) -> None:
    """In Kafka Connect's words, where it has some."""
    with pytest.raises(RecordError) as refused:
        converter(target_type="Timestamp", **config).apply(record(value, schema))

    assert refused.value.reason.startswith(reported)


@pytest.mark.parametrize(
    ("config", "key", "reported"),
    [
        (
            {"target.type": "string", "format": " "},
            "format",
            "TimestampConverter requires format option to be specified when using string timestamps",
        ),
        (
            {"target.type": "unix", "format": "b"},
            "format",
            (
                "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: b:"
                " Illegal pattern character 'b'"
            ),
        ),
        (
            {"target.type": "foo"},
            "target.type",
            (
                "Invalid value foo for configuration target.type: String must be one of: string, unix, Date,"
                " Time, Timestamp"
            ),
        ),
        (
            {"target.type": "unix", "unix.precision": "b"},
            "unix.precision",
            (
                "Invalid value b for configuration unix.precision: String must be one of: nanoseconds,"
                " microseconds, milliseconds, seconds"
            ),
        ),
    ],
)
def test_settings_that_cannot_work_are_reported(
    config: dict[str, str], key: str, reported: str
) -> None:
    """Before a connector starts."""
    assert ((key, reported),) == TimestampConverterConfig.problems(config)


@pytest.mark.parametrize(
    "text", ["2020-01-02", "2020-1-2", "2020-01-02x", "2020-13-45", "1500-01-01"]
)
def test_texts_that_are_not_as_wide_as_their_pattern_go_one_by_one(text: str) -> None:
    """Java's lenient reading of them is the same either way."""
    batch = batch_of(["2021-02-03", text], STRING)
    config = {"target.type": "Timestamp", "format": "yyyy-MM-dd"}

    at_once = check_both_ways(made("TimestampConverter$Value", config), batch)

    assert (text == "2020-01-02") is at_once


TIMES = [each for each in LEAVES if each[0] in (DATE, TIME, TIMESTAMP, INT64)]


@given(
    batch=batches(st.sampled_from(TIMES)),
    target=st.sampled_from(["string", "unix", "Date", "Time", "Timestamp"]),
    unit=st.sampled_from(["seconds", "milliseconds", "microseconds", "nanoseconds"]),
    form=st.sampled_from(
        ["yyyy-MM-dd'T'HH:mm:ss.SSS", "EEE, d MMM yyyy h:mm a z", "D w W F u k K"]
    ),
)
def test_whole_columns_become_what_their_rows_become(
    batch: SourceBatch, target: str, unit: str, form: str
) -> None:
    """From every form into every form, where the column can go at once."""
    config = {"target.type": target, "unix.precision": unit, "format": form}

    check_both_ways(made("TimestampConverter$Value", config), batch)


@given(
    batch=batches(),
    field=st.sampled_from(NAMES),
    target=st.sampled_from(["string", "unix", "Date", "Time", "Timestamp"]),
    defaults=st.sampled_from(["true", "false"]),
)
def test_fields_of_columns_become_what_those_of_rows_become(
    batch: SourceBatch, field: str, target: str, defaults: str
) -> None:
    """Nulls and defaults included."""
    config = {
        "field": field,
        "target.type": target,
        "format": "yyyy MM",
        "replace.null.with.default": defaults,
    }

    check_both_ways(made("TimestampConverter$Key", config), batch)


@given(
    stamps=st.lists(st.integers(-12_000_000_000_000, 250_000_000_000_000), min_size=1),
    form=st.sampled_from(["yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "ddMMyyyyHHmmssSSS"]),
)
def test_texts_of_a_fixed_form_are_read_at_once(stamps: list[int], form: str) -> None:
    """What was written is read again."""
    column = pa.array(stamps).view(pa.timestamp("ms", tz="UTC"))
    batch = replace(batch_of([EPOCH] * len(stamps), TIMESTAMP), values=column)
    (texts,) = converter(target_type="string", format=form).apply_batch(batch) or ()

    (back,) = converter(target_type="Timestamp", format=form).apply_batch(texts) or ()

    assert column.equals(back.values)


def test_a_number_that_is_too_wide_stays_at_the_end() -> None:
    """As Java's units do."""
    after = converter(target_type="unix", unix_precision="nanoseconds").apply(
        record(dt.datetime(9999, 1, 1, tzinfo=dt.UTC), TIMESTAMP)
    )

    assert 2**63 - 1 == after.value


def test_a_field_of_what_is_no_struct_is_refused() -> None:
    """A null of it, too."""
    text = Schema(type=SchemaType.STRING, optional=True, default="x")

    with pytest.raises(RecordError) as refused:
        converter(field="t", target_type="unix").apply(record(None, text))

    reported = "Only Struct objects supported for [converting timestamp formats], found: null"
    assert reported == refused.value.reason


def test_a_null_struct_passes_whatever_its_field_is() -> None:
    """Only a struct that is there shows that a field is no time."""
    schema = Schema(type=SchemaType.STRUCT, optional=True, fields=(Field("t", BOOLEAN),))
    config = {"field": "t", "target.type": "unix"}

    check_both_ways(made("TimestampConverter$Value", config), batch_of([None], schema))
    after = converter(field="t", target_type="unix").apply(record(None, schema))

    assert after.value is None


def test_records_without_a_key_go_on_at_once() -> None:
    """There is nothing to convert."""
    batch = batch_of(["v"], STRING)
    config = {"target.type": "unix"}

    assert check_both_ways(made("TimestampConverter$Key", config), batch)
