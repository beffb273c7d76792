"""Numbers and booleans as the few bytes that Java's serializers write, the highest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.config import Config
from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema, SchemaType
from headrace.converters.columns import java_class, refusal


class NumberConverterConfig(Config):
    """The converters of numbers and booleans have no settings."""


class NumberConverter:
    """Writes numbers of one type, and refuses any other, also a narrower one.

    As in Connect, only the type of the values counts, not their schema.
    """

    config_class = NumberConverterConfig
    kind: ClassVar[pa.DataType]
    word: ClassVar[str]

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Nothing to configure."""

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The bytes of each of *values*; a null stays null, whatever the schema says."""
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if values.type != self.kind:
            name = java_class(values.type)
            raise refusal(f"Failed to serialize to {self.word} (was class {name}): ", values)
        return _big_endian(values)


class ShortConverter(NumberConverter):
    """Two bytes."""

    kind, word = pa.int16(), "short"


class IntegerConverter(NumberConverter):
    """Four bytes."""

    kind, word = pa.int32(), "integer"


class LongConverter(NumberConverter):
    """Eight bytes."""

    kind, word = pa.int64(), "long"


class FloatConverter(NumberConverter):
    """Four bytes, as IEEE 754 has them."""

    kind, word = pa.float32(), "float"


class DoubleConverter(NumberConverter):
    """Eight bytes, as IEEE 754 has them."""

    kind, word = pa.float64(), "double"


class BooleanConverter:
    """One byte: 1 or 0."""

    config_class = NumberConverterConfig

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Nothing to configure."""

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The byte of each of *values*; a null stays null. Refuses another schema, and other values."""
        if schema is not None and schema.type is not SchemaType.BOOLEAN:
            raise RecordError(
                f"Invalid schema type for BooleanConverter: {schema.type.name}", row=0
            )
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if not pa.types.is_boolean(values.type):
            name = java_class(values.type)
            raise refusal(
                f"BooleanConverter is not compatible with objects of type class {name}", values
            )
        return _big_endian(values.cast(pa.uint8()))


def _big_endian(values: pa.Array) -> pa.BinaryArray:
    """Numbers as columns of their bytes; nulls have arbitrary bytes."""
    stored = np.frombuffer(values.buffers()[1], values.type.to_pandas_dtype())
    numbers = stored[values.offset : values.offset + len(values)]
    octets = numbers.astype(numbers.dtype.newbyteorder(">")).tobytes()
    # 64-bit offsets, so that Arrow reports more than 2 GB instead of an overflow of the offsets.
    borders = np.arange(len(values) + 1, dtype=np.int64) * numbers.itemsize
    column = pa.Array.from_buffers(
        pa.large_binary(), len(values), [None, pa.py_buffer(borders), pa.py_buffer(octets)]
    ).cast(pa.binary())
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column
