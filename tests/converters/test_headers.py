"""Header values as bytes."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.connect.converting import ColumnarHeaderConverter
from headrace.connect.errors import ConfigError, RecordError
from headrace.connect.record import Header
from headrace.connect.schema import INT64, STRING, Field, Schema, SchemaType, arrow_type
from headrace.converters import make_header_converter

_FLOAT = Schema(type=SchemaType.FLOAT32)
_ROW = Schema(type=SchemaType.STRUCT, fields=(Field("f", _FLOAT), Field("s", STRING)))


def _encode(value: object, schema: Schema | None = None, name: str = "simple") -> bytes | None:
    return make_header_converter(name, {}).encode_header("topic", Header("h", value, schema))


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ('a"b', b'a"b'),
        (5, b"5"),
        (1.5, b"1.5"),
        (1e10, b"1.0E10"),
        (True, b"true"),
        (b"\x01\x02", b"AQI="),
        (['a"\\b', 1, True, 1.5], b'["a\\"\\\\b",1,true,1.5]'),
        ({'k"': [1]}, b'{"k\\"":[1]}'),
        ({1: None}, b"{1:null}"),
        ([None, b"\x01"], b'[null,"AQ=="]'),
        (Decimal("1.230"), b"1.230"),
        (dt.datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=dt.UTC), b"00:00:00.005Z"),
        (dt.datetime(1970, 1, 2, 0, 0, 0, 5000, tzinfo=dt.UTC), b"1970-01-02T00:00:00.005Z"),
        (dt.date(1970, 1, 4), b"1970-01-04"),
        (dt.time(1, 2, 3), b"01:02:03.000Z"),
        (None, None),
    ],
)
def test_simple_text_forms_are_connects(value: object, reported: bytes | None):
    """Each line was written by Kafka Connect 4.3.1."""
    assert reported == _encode(value)


def test_schemas_of_members_count():
    """A number of 32 bits inside a struct is as short as one alone."""
    assert b"0.1" == _encode(0.10000000149011612, _FLOAT)
    assert b'{"f":0.1,"s":"x"}' == _encode({"f": 0.10000000149011612, "s": "x"}, _ROW)


def test_a_null_of_a_struct_is_its_default():
    """As for everybody who reads Connect's structs."""
    field = dataclasses.replace(INT64, optional=True, default=5)
    schema = Schema(type=SchemaType.STRUCT, fields=(Field("n", field), Field("s", STRING)))
    assert b'{"n":5,"s":"x"}' == _encode({"n": None, "s": "x"}, schema)


def test_maps_are_written_alike_in_columns():
    """All headers of a column at once, and each alone."""
    schema = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=INT64)
    column = pa.array([[("k", 1)], [], None], arrow_type(schema))
    converter = make_header_converter("simple", {})
    assert isinstance(converter, ColumnarHeaderConverter)
    assert [b'{"k":1}', b"{}", None] == converter.encode_headers(
        "topic", "h", schema, column
    ).to_pylist()
    assert b'{"k":1}' == _encode({"k": 1}, schema)


def test_half_a_surrogate_pair_is_a_question_mark():
    """UTF-8 has none."""
    assert b"?x" == _encode("\ud800x")


def test_what_has_no_text_form_is_refused():
    """The error names the header."""
    with pytest.raises(RecordError, match="The header 'h' cannot be converted"):
        _encode([object()])
    with pytest.raises(RecordError, match="The header 'h' cannot be converted"):
        _encode("x", Schema(type=SchemaType.INT32), name="json")


def test_converters_of_values_convert_headers():
    """As in Connect, any converter may be named for headers."""
    assert b'{"schema":{"type":"string","optional":false},"payload":"a"}' == _encode(
        "a", STRING, name="org.apache.kafka.connect.json.JsonConverter"
    )
    assert b"1.0" == _encode(1.0, name="string")


@pytest.mark.parametrize(
    ("value", "schema"), [(2**70, INT64), (2**70, None), ("x", INT64), (object(), None)]
)
def test_what_a_column_cannot_hold_is_refused_with_the_header(value: object, schema: Schema | None):
    """Also numbers beyond 64 bits."""
    with pytest.raises(RecordError, match="The header 'h' cannot be converted"):
        _encode(value, schema, name="string")


def test_an_unknown_converter_is_refused():
    """The sentence says which there are."""
    with pytest.raises(ConfigError, match=r"Valid ones are: json, string, .*, boolean, simple"):
        make_header_converter("nope", {})
