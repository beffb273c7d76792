"""Text: strings as they are, anything else as Java prints it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.java_floats import java_floats
from headrace.connect.schema import Schema
from headrace.converters.columns import as_binary, is_bytes, is_document, is_text, refusal
from headrace.converters.java_texts import java_texts

_UTF_8 = codecs.lookup("utf-8").name
# Java's UTF-16 is big-endian behind a byte order mark; Python's follows the machine.
_JAVA_UTF_16 = codecs.lookup("utf-16").name


class StringConverterConfig(Config):
    """Settings of :class:`StringConverter`."""

    encoding: str = setting(
        "converter.encoding",
        default="UTF-8",
        importance="high",
        doc="The name of the character set of the text in Kafka.",
    )

    def check(self) -> Iterator[Problem]:
        """An encoding that Python does not know is a problem."""
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            yield "converter.encoding", f"Unsupported encoding {self.encoding}"


class StringConverter:
    """Writes values as Java prints them; strings in UTF-8, bytes and JSON documents are not touched."""

    config_class = StringConverterConfig

    def __init__(self) -> None:
        self._encoding = _UTF_8

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take ``converter.encoding``."""
        self._encoding = codecs.lookup(StringConverterConfig.parse(config).encoding).name

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The text of each of *values*; what is nested needs a schema."""
        kind = values.type
        if is_bytes(kind) or pa.types.is_null(kind):
            return as_binary(values)
        if is_text(kind) or is_document(kind):
            return self._recoded(values)
        if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return self._recoded(java_floats(values))
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            return self._recoded(values.cast(pa.utf8()))
        if pa.types.is_decimal(kind):
            # Arrow writes decimals as Java's BigDecimal does, exponents included.
            return self._recoded(values.cast(pa.utf8()))
        if schema is not None or pa.types.is_temporal(kind):
            return self._recoded(java_texts(values))
        raise _unsupported(values)

    def _recoded(self, text: pa.Array) -> pa.BinaryArray:
        if self._encoding == _UTF_8:
            return as_binary(text)
        rows = (None if row is None else self._encoded(row) for row in text.to_pylist())
        return pa.array(rows, pa.binary(), size=len(text))

    def _encoded(self, row: str) -> bytes:
        # As in Java, a character that the encoding lacks becomes a question mark.
        if self._encoding == _JAVA_UTF_16:
            return codecs.BOM_UTF16_BE + row.encode("utf-16-be", errors="replace")
        return row.encode(self._encoding, errors="replace")


def _unsupported(values: pa.Array) -> RecordError:
    return refusal(
        f"StringConverter does not support values of type {values.type} without a schema.", values
    )
