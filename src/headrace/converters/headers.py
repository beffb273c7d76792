"""Headers as text, and any converter of columns as a converter of headers."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.config import Config
from headrace.connect.converting import Converter
from headrace.connect.errors import RecordError
from headrace.connect.record import Header
from headrace.connect.schema import Schema, arrow_type
from headrace.converters.header_text import header_text


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
        told = value if isinstance(value, str) else header_text(value, header.schema, header.key)
        # As in Java, half a surrogate pair, which UTF-8 lacks, becomes a question mark.
        return told.encode(errors="replace")

    def encode_headers(
        self, topic: str, key: str, schema: Schema | None, values: pa.Array
    ) -> pa.BinaryArray:
        """What :meth:`encode_header` gives for each value."""
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
        """Hand the settings to the converter."""
        self._converter.configure(config, is_key=False)

    def encode_header(self, topic: str, header: Header) -> bytes | None:
        """What the converter makes of a column with this one value."""
        kind = None if header.schema is None else arrow_type(header.schema)
        try:
            column = pa.array([header.value], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise RecordError(f"The header {header.key!r} cannot be converted: {error}") from error
        return self._converter.encode(topic, header.schema, column)[0].as_py()

    def encode_headers(
        self, topic: str, key: str, schema: Schema | None, values: pa.Array
    ) -> pa.BinaryArray:
        """What the converter makes of the column."""
        return self._converter.encode(topic, schema, values)
