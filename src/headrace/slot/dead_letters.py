"""What is sent in place of a record that was passed over (KIP-298); pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.connect.bad_record import BadRecord
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.kafka.sender import EncodedHeaders, EncodedRecords
from headrace.observe.hidden import Hidden
from headrace.slot.traces import trace_of

PREFIX = "__connect.errors."
REFERENCE = f"{PREFIX}source.reference"
"""The header that says where the record is when its bytes are not in the letter."""

# A reason may quote what it is about; a letter must not become too large by what is told of it.
_MOST_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A record that goes nowhere else: what is wrong with it, in which *stage* and by which class it was found."""

    error: RecordError
    bad: BadRecord
    stage: str
    class_name: str
    key: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Makes the letters of one task for *topic*; *context* asks for the headers that tell of each.

    What is *hidden* is in no header that tells an error.
    """

    topic: str
    context: bool
    connector: str
    task: int
    hidden: Hidden = field(default_factory=Hidden, repr=False)

    def attempts(self, passed: PassedOver) -> Iterator[EncodedRecords]:
        """The letters to try until one is not too large: the fullest first, the last one says only where to look.

        A record whose bytes cannot be had, or are too many, is told by where it is.
        """
        context = self._headers(passed) if self.context else []
        for headers in (context, []) if context else ([],):
            if passed.bad.raw is not None:
                yield self._letter(passed.key, passed.bad.raw, headers)
            yield self._letter(None, None, [*headers, (REFERENCE, _reference(passed.bad))])

    def _letter(
        self, key: bytes | None, value: bytes | None, headers: EncodedHeaders
    ) -> EncodedRecords:
        return EncodedRecords(
            topic=self.topic,
            keys=None if key is None else pa.array([key], pa.binary()),
            values=pa.array([value], pa.binary()),
            headers=[headers] if headers else None,
        )

    def _headers(self, passed: PassedOver) -> EncodedHeaders:
        bad, error = passed.bad, passed.error
        told: dict[str, str | None] = {
            "topic": bad.topic,
            "connector.name": self.connector,
            "task.id": str(self.task),
            "stage": passed.stage,
            "class.name": passed.class_name,
            "exception.class.name": class_name(error),
            "exception.message": _short(self.hidden.masked(str(error))),
            "exception.stacktrace": _short(self.hidden.masked(trace_of(error))),
            "source.object": error.native_key,
            "source.position": error.position,
        }
        places = {"source.partition": bad.source_partition, "source.offset": bad.source_offset}
        return [
            *(
                (f"{PREFIX}{name}", text.encode(errors="backslashreplace"))
                for name, text in told.items()
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
    """The class of *of* by its path."""
    return f"{type(of).__module__}.{type(of).__qualname__}"


def _short(text: str) -> str:
    """The beginning and the end of *text*: a trace tells at its end what happened."""
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:half]}…{text[-half:]}"


def _json(values: Mapping[str, object]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=_text_of)
    return text.encode(errors="backslashreplace")


def _text_of(value: OffsetValue) -> str:
    # Offsets may hold bytes; nothing else that JSON has no word for.
    return value.hex() if isinstance(value, bytes) else str(value)
