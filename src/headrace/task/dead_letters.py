"""Dead letters: what is sent in place of a skipped record (KIP-298); pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.record import BadRecord
from headrace.converters import make_converter
from headrace.kafka.sender import EncodedHeaders, EncodedRecords
from headrace.observe.secret_masking import Secrets
from headrace.task.stack_trace import trace_of


def raw_value(batch: SourceBatch) -> bytes | None:
    """The first row's value: unchanged if it is text or bytes, otherwise as JSON; ``None`` if there is no such form."""
    found = _bytes_of(batch.values)
    return found if found is not None else _json_of(batch)


def raw_key(batch: SourceBatch) -> bytes | None:
    """The first row's key if it is text or bytes, otherwise ``None``."""
    return None if batch.keys is None else _bytes_of(batch.keys)


def _bytes_of(column: pa.Array) -> bytes | None:
    first = column.slice(0, 1)
    if pa.types.is_string(first.type) or pa.types.is_large_string(first.type):
        # Not through a Python string: the refused text may be invalid UTF-8.
        first = first.cast(pa.large_binary())
    if not (pa.types.is_binary(first.type) or pa.types.is_large_binary(first.type)):
        return None
    return first[0].as_py()


def _json_of(batch: SourceBatch) -> bytes | None:
    if not batch.values[0].is_valid:
        return None
    converter = make_converter("json", {"schemas.enable": "false"}, is_key=False)
    try:
        encoded = converter.encode(batch.topic, batch.value_schema, batch.values.slice(0, 1))
    except (RecordError, ValueError, OverflowError):
        # The letter then has only the source position. Python cannot format a date after the year 9999, for example.
        return None
    return encoded[0].as_py()


PREFIX = "__connect.errors."
REFERENCE = f"{PREFIX}source.reference"
"""The header that says where the record is if its bytes are not in the letter."""

# A message may quote the record; the headers must not make the letter too large.
_MOST_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that is skipped: its error, the *stage* in which it occurred, and the class that raised it."""

    error: RecordError
    bad: BadRecord
    stage: str
    class_name: str
    key: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Makes the dead letters of one task for *topic*; *context* asks for the headers that describe the error.

    *secrets* are masked in these headers.
    """

    topic: str
    context: bool
    connector: str
    task: int
    secrets: Secrets = field(default_factory=Secrets, repr=False)

    def attempts(self, record: SkippedRecord) -> Iterator[EncodedRecords]:
        """The letters to try until one is not too large: the most complete first, the last only with a reference.

        A record whose bytes are not available or are too many is identified by its source position.
        """
        context = self._headers(record) if self.context else []
        for headers in (context, []) if context else ([],):
            if record.bad.raw is not None:
                yield self._letter(record.key, record.bad.raw, headers)
            yield self._letter(None, None, [*headers, (REFERENCE, _reference(record.bad))])

    def _letter(
        self, key: bytes | None, value: bytes | None, headers: EncodedHeaders
    ) -> EncodedRecords:
        return EncodedRecords(
            topic=self.topic,
            keys=None if key is None else pa.array([key], pa.binary()),
            values=pa.array([value], pa.binary()),
            headers=[headers] if headers else None,
        )

    def _headers(self, record: SkippedRecord) -> EncodedHeaders:
        bad, error = record.bad, record.error
        texts: dict[str, str | None] = {
            "topic": bad.topic,
            "connector.name": self.connector,
            "task.id": str(self.task),
            "stage": record.stage,
            "class.name": record.class_name,
            "exception.class.name": class_name(error),
            "exception.message": _short(self.secrets.masked(str(error))),
            "exception.stacktrace": _short(self.secrets.masked(trace_of(error))),
            "source.object": error.native_key,
            "source.position": error.position,
        }
        places = {"source.partition": bad.source_partition, "source.offset": bad.source_offset}
        return [
            *(
                (f"{PREFIX}{name}", text.encode(errors="backslashreplace"))
                for name, text in texts.items()
                if text is not None
            ),
            *(
                (f"{PREFIX}{name}", _json(dict(place)))
                for name, place in places.items()
                if place is not None
            ),
        ]


def _reference(bad: BadRecord) -> bytes:
    offset = bad.source_offset
    return _json(
        {
            **bad.reference,
            "sourcePartition": dict(bad.source_partition),
            "sourceOffset": None if offset is None else dict(offset),
        }
    )


def class_name(of: object) -> str:
    """The class of *of* with its module."""
    return f"{type(of).__module__}.{type(of).__qualname__}"


def _short(text: str) -> str:
    """The beginning and the end of *text*: a trace has its message at the end."""
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:half]}…{text[-half:]}"


def _json(values: Mapping[str, object]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=_text_of)
    return text.encode(errors="backslashreplace")


def _text_of(value: OffsetValue) -> str:
    # Of the types that JSON cannot express, offsets may hold only bytes.
    return value.hex() if isinstance(value, bytes) else str(value)
