"""The JSON converter, against what Kafka Connect's writes."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.connect.errors import ConfigError, RecordError
from headrace.connect.schema import (
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    JSON_DOCUMENT,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Schema,
    SchemaType,
    arrow_type,
)
from headrace.converters import make_converter

# Each line was written by Kafka Connect 4.3.1.
_WITH_SCHEMA = [
    (STRING, 'a"\x1f😀', b'{"type":"string","optional":false}', rb'"a\"\u001F\uD83D\uDE00"'),
    (OPTIONAL_STRING, None, b'{"type":"string","optional":true}', b"null"),
    (FLOAT64, 1e-5, b'{"type":"double","optional":false}', b"1.0E-5"),
    (FLOAT64, float("nan"), b'{"type":"double","optional":false}', b'"NaN"'),
    (Schema(type=SchemaType.INT8), 5, b'{"type":"int8","optional":false}', b"5"),
    (BYTES, b"\x01\x02\x03\x04", b'{"type":"bytes","optional":false}', b'"AQIDBA=="'),
    (
        Schema(
            type=SchemaType.STRING,
            optional=True,
            name="n",
            version=2,
            doc="d",
            parameters={"b": "1", "a": "é"},
            default="x\n",
        ),
        None,
        '{"type":"string","optional":true,"name":"n","version":2,"doc":"d",'
        '"parameters":{"b":"1","a":"é"},"default":"x\\n"}'.encode(),
        rb'"x\n"',
    ),
    (
        dataclasses.replace(BYTES, default=b"\x01"),
        b"\x02",
        b'{"type":"bytes","optional":false,"default":"AQ=="}',
        b'"Ag=="',
    ),
    (
        TIMESTAMP,
        dt.datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=dt.UTC),
        (
            b'{"type":"int64","optional":false,"name":"org.apache.kafka.connect.data.Timestamp",'
            b'"version":1}'
        ),
        b"5",
    ),
    (
        DATE,
        dt.date(1970, 1, 2),
        b'{"type":"int32","optional":false,"name":"org.apache.kafka.connect.data.Date","version":1}',
        b"1",
    ),
]


def _encode(schema: Schema | None, values: pa.Array, **config: str) -> list[bytes | None]:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    converter = make_converter("json", settings, is_key=False)
    return converter.encode("topic", schema, values).to_pylist()


@pytest.mark.parametrize(("schema", "value", "reported", "payload"), _WITH_SCHEMA)
def test_the_envelope_is_connects(schema: Schema, value: object, reported: bytes, payload: bytes):
    """With schemas, every byte is what Kafka Connect writes."""
    column = pa.array([value], arrow_type(schema))
    expected = b'{"schema":' + reported + b',"payload":' + payload + b"}"
    assert [expected] == _encode(schema, column)


@pytest.mark.parametrize(("schema", "value", "reported", "payload"), _WITH_SCHEMA)
def test_without_schemas_the_payload_is_left(
    schema: Schema, value: object, reported: bytes, payload: bytes
):
    """With ``schemas.enable=false`` the same value is written without its envelope."""
    column = pa.array([value], arrow_type(schema))
    assert [payload] == _encode(schema, column, schemas_enable="false")


@pytest.mark.parametrize(
    ("column", "payload"),
    [
        (pa.array(["😀"]), rb'"\uD83D\uDE00"'),
        (pa.array([5]), b"5"),
        (pa.array([True]), b"true"),
        (pa.array([b"\x01\x02\xff"]), b'"AQL/"'),
        (pa.array([1.5], pa.float32()), b"1.5"),
        (pa.array([1e10]), b"1.0E10"),
    ],
)
def test_values_without_schema(column: pa.Array, payload: bytes):
    """A value without schema has the schema null in its envelope."""
    assert [b'{"schema":null,"payload":' + payload + b"}"] == _encode(None, column)
    assert [payload] == _encode(None, column, schemas_enable="false")


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_null_without_schema_is_a_tombstone(enabled: str):
    """Kafka's null stays Kafka's null."""
    assert [None] == _encode(None, pa.array([None], pa.utf8()), schemas_enable=enabled)
    assert [None] == _encode(None, pa.array([None], pa.null()), schemas_enable=enabled)


def test_documents_are_not_copied():
    """Without schemas, JSON documents leave as the bytes that they came as."""
    documents = pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array(['{"a":1}', None]))
    converter = make_converter("json", {"schemas.enable": "false"}, is_key=False)
    encoded = converter.encode("topic", None, documents)
    assert [b'{"a":1}', None] == encoded.to_pylist()
    assert documents.storage.buffers()[2].address == encoded.buffers()[2].address


def test_documents_are_payloads():
    """With schemas, a JSON document is the payload as it is."""
    documents = pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array(['{"a":1}']))
    assert [b'{"schema":null,"payload":{"a":1}}'] == _encode(None, documents)


def test_a_required_null_is_an_error_of_its_row():
    """The first null of a schema that allows none is named."""
    with pytest.raises(RecordError, match="null value for field that is required") as caught:
        _encode(STRING, pa.array(["a", None, None]))
    assert 1 == caught.value.row


def test_defaults_replace_nulls_only_if_asked():
    """``replace.null.with.default`` decides about a null where the schema has a default."""
    schema = dataclasses.replace(OPTIONAL_STRING, default="d")
    column = pa.array([None], pa.utf8())
    plain = {"schemas_enable": "false"}
    assert [b'"d"'] == _encode(schema, column, **plain)
    assert [b"null"] == _encode(schema, column, replace_null_with_default="false", **plain)


def test_values_must_fit_their_schema():
    """A column of another type than its schema is refused in Connect's words."""
    with pytest.raises(
        RecordError, match=r"Invalid type for STRING: class java\.lang\.Integer"
    ) as caught:
        _encode(STRING, pa.array([None, 5], pa.int32()))
    assert 1 == caught.value.row
    with pytest.raises(RecordError, match=r"Invalid type for INT32: class java\.lang\.Long"):
        _encode(INT32, pa.array([5], pa.int64()))


def test_bad_settings_are_refused():
    """All settings of the converter are validated."""
    settings = {"schemas.enable": "x", "decimal.format": "y", "schemas.cache.size": "z"}
    with pytest.raises(ConfigError) as caught:
        make_converter("json", settings, is_key=True)
    assert ["schemas.enable", "schemas.cache.size", "decimal.format"] == [
        key for key, _ in caught.value.problems
    ]
    with pytest.raises(ConfigError, match="It must be a schema in JSON"):
        make_converter("json", {"schema.content": "{"}, is_key=True)
    make_converter("json", {"decimal.format": "numeric"}, is_key=True)


def test_a_schema_for_reading_changes_nothing():
    """As in Connect, ``schema.content`` counts only where values are read."""
    content = '{"type":"int64","optional":true}'
    expected = b'{"schema":{"type":"string","optional":false},"payload":"a"}'
    assert [expected] == _encode(STRING, pa.array(["a"]), schema_content=content)


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (pa.array([None, dt.date(1970, 1, 2)]), "java.util.Date"),
        (pa.array([None, Decimal("1.5")]), "java.math.BigDecimal"),
    ],
)
def test_dates_and_decimals_need_a_schema(column: pa.Array, name: str):
    """Connect has no type for their classes alone."""
    sentence = f"Java class class {name} does not have corresponding schema type"
    with pytest.raises(RecordError, match=sentence) as caught:
        _encode(None, column)
    assert 1 == caught.value.row
