"""Bytes as they are."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headrace.connect.config import Config
from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema, SchemaType
from headrace.converters.columns import as_binary, is_bytes, is_document, java_class, refusal


class BytesConverterConfig(Config):
    """:class:`BytesConverter` has no settings."""


class BytesConverter:
    """Passes bytes and JSON documents on; anything else is refused, as Connect's ``ByteArrayConverter`` does."""

    config_class = BytesConverterConfig

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Nothing to configure."""

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The bytes of *values*, not copied. Refuses a schema other than bytes, and other values."""
        if schema is not None and schema.type is not SchemaType.BYTES:
            raise RecordError(
                f"Invalid schema type for ByteArrayConverter: {schema.type.name}", row=0
            )
        kind = values.type
        if not (is_bytes(kind) or is_document(kind) or pa.types.is_null(kind)):
            name = java_class(kind)
            raise refusal(
                f"ByteArrayConverter is not compatible with objects of type class {name}", values
            )
        return as_binary(values)
