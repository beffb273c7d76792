"""Headers as text, and any converter of columns as a converter of headers."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.config import Config
from headrace.connect.converting import Converter
from headrace.connect.errors import RecordError
from headrace.connect.record import Header
from headrace.connect.schema import Schema, SchemaType, arrow_type
from headrace.java.numbers import java_double, java_float

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_MS = 86_400_000


def header_text(value: object, schema: Schema | None, key: str) -> str:
    """A value other than a top-level string, in Connect's text form; strings inside it are quoted."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            single = schema is not None and schema.type is SchemaType.FLOAT32
            return java_float(value) if single else java_double(value)
        case int() | Decimal():
            return str(value)
        case dt.date() | dt.time():
            return _instant(value)
        case _:
            return _contained(value, schema, key)


def _contained(value: object, schema: Schema | None, key: str) -> str:
    kind = None if schema is None else schema.type
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            members = _members(entries, schema) if kind is SchemaType.STRUCT else entries.items()
            return _braced(members, schema, key)
        case Sequence() if kind is SchemaType.MAP:
            # Arrow returns maps as lists of pairs.
            return _braced(cast("Sequence[tuple[object, object]]", value), schema, key)
        case Sequence():
            items = cast("Sequence[object]", value)
            return f"[{','.join(_inside(each, _member(schema, None), key) for each in items)}]"
        case _:
            raise RecordError(
                f"The header {key!r} cannot be converted: "
                f"it holds a {type(value).__name__}, which has no text form in Connect."
            )


def _braced(entries: Iterable[tuple[object, object]], schema: Schema | None, key: str) -> str:
    pairs = (
        f"{_inside(name, _keys_of(schema), key)}:{_inside(each, _member(schema, name), key)}"
        for name, each in entries
    )
    return f"{{{','.join(pairs)}}}"


def _members(
    struct: Mapping[object, object], schema: Schema | None
) -> Iterator[tuple[object, object]]:
    """The fields of *struct* in the schema's order; a null is its field's default, as to a reader in Java."""
    for each in schema.fields if schema else ():
        value = struct.get(each.name)
        if value is None and each.schema.default is not None:
            value = pa.array([each.schema.default], arrow_type(each.schema))[0].as_py()
        yield each.name, value


def _inside(value: object, schema: Schema | None, key: str) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    text = header_text(value, schema, key)
    return f'"{text}"' if isinstance(value, bytes) else text


def _keys_of(schema: Schema | None) -> Schema | None:
    return None if schema is None else schema.key_schema


def _member(schema: Schema | None, name: object) -> Schema | None:
    if schema is None or schema.type is not SchemaType.STRUCT:
        return None if schema is None else schema.value_schema
    return next((each.schema for each in schema.fields if each.name == name), None)


def _instant(value: dt.date | dt.time) -> str:
    """Connect looks at the number of milliseconds only: less than a day is a time, whole days are a date."""
    moment = _moment(value)
    elapsed = (moment - _EPOCH) // dt.timedelta(milliseconds=1)
    clock = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    if elapsed < _DAY_MS:
        return clock
    day = moment.date().isoformat()
    return day if elapsed % _DAY_MS == 0 else f"{day}T{clock}"


def _moment(value: dt.date | dt.time) -> dt.datetime:
    if isinstance(value, dt.time):
        return dt.datetime.combine(_EPOCH.date(), value, tzinfo=dt.UTC)
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time(), tzinfo=dt.UTC)
    # Connect's timestamps are UTC; a Python datetime without zone is taken to be UTC.
    return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)


class SimpleHeaderConverterConfig(Config):
    """:class:`SimpleHeaderConverter` has no settings."""


class SimpleHeaderConverter:
    """Writes Connect's text forms: ``1.0``, ``[1,"a"]``, ``{"k":true}``; strings at the top as they are."""

    config_class = SimpleHeaderConverterConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing to configure."""

    def encode_header(self, topic: str, header: Header) -> bytes | None:
        """The text of the header's value; ``None`` stays ``None``."""
        value = header.value
        if value is None:
            return None
        text = value if isinstance(value, str) else header_text(value, header.schema, header.key)
        # As in Java, half a surrogate pair, which UTF-8 lacks, becomes a question mark.
        return text.encode(errors="replace")

    def encode_headers(
        self, topic: str, key: str, schema: Schema | None, values: pa.Array
    ) -> pa.BinaryArray:
        if pa.types.is_integer(values.type) or pa.types.is_string(values.type):
            return pc.cast(pc.cast(values, pa.string()), pa.binary())
        return pa.array(
            (
                self.encode_header(topic, Header(key, value, schema))
                for value in values.to_pylist(maps_as_pydicts="strict")
            ),
            pa.binary(),
        )


class ColumnHeaderConverter:
    """Converts each header with a converter of columns, as Connect does with a converter named for headers."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter

    def configure(self, config: Mapping[str, str]) -> None:
        self._converter.configure(config, is_key=False)

    def encode_header(self, topic: str, header: Header) -> bytes | None:
        """The converter's bytes for a column with this one value."""
        kind = None if header.schema is None else arrow_type(header.schema)
        try:
            column = pa.array([header.value], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise RecordError(f"The header {header.key!r} cannot be converted: {error}") from error
        return self._converter.encode(topic, header.schema, column)[0].as_py()

    def encode_headers(
        self, topic: str, key: str, schema: Schema | None, values: pa.Array
    ) -> pa.BinaryArray:
        return self._converter.encode(topic, schema, values)
