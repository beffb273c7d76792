"""What is sent in place of a record that was passed over (KIP-298), with stack traces that cost little; pure."""

from __future__ import annotations

import json
import linecache
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from types import TracebackType
from typing import Final

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.record import BadRecord
from headrace.converters import make_converter
from headrace.kafka.sender import EncodedHeaders, EncodedRecords
from headrace.observe.secret_masking import Secrets


def raw_value(batch: SourceBatch) -> bytes | None:
    """The first row's value: as it is when it is text or bytes, otherwise as JSON; ``None`` for no bytes."""
    found = _bytes_of(batch.values)
    return found if found is not None else _json_of(batch)


def raw_key(batch: SourceBatch) -> bytes | None:
    """The first row's key when it is text or bytes."""
    return None if batch.keys is None else _bytes_of(batch.keys)


def _bytes_of(column: pa.Array) -> bytes | None:
    first = column.slice(0, 1)
    if pa.types.is_string(first.type) or pa.types.is_large_string(first.type):
        # Not by way of a Python string: what is refused may be no UTF-8.
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
        # It is told by its place then; a date beyond the year 9999 has no text in Python, for example.
        return None
    return encoded[0].as_py()


_BECAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"
# As Python does: of a function that calls itself no one needs to see more.
_REPEATED: Final = 3
_Place = tuple[str, int, str]


def trace_of(error: BaseException) -> str:
    """*error* with the errors before it, as Python prints them, but for the marks below lines."""
    chain = [*_chain(error)]
    if any(isinstance(each, BaseExceptionGroup) for each, _ in chain):
        # Rare, and drawn as a tree.
        return "".join(traceback.format_exception(error))
    return "".join(piece for each, link in reversed(chain) for piece in _pieces(each, link))


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """*error*, and then each one that it came from, with the words between that and the one before."""
    seen = set[int]()
    link = ""
    told: BaseException | None = error
    while told is not None:
        seen.add(id(told))
        yield told, link
        cause, context = told.__cause__, told.__context__
        if cause is not None and id(cause) not in seen:
            told, link = cause, _BECAUSE
        elif context is not None and id(context) not in seen and not told.__suppress_context__:
            told, link = context, _DURING
        else:
            told = None


def _pieces(error: BaseException, link: str) -> Iterator[str]:
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from _frames(error.__traceback__)
    yield from _last_lines(error)
    yield link


def _frames(trace: TracebackType) -> Iterator[str]:
    for place, same in groupby(_places(trace)):
        count = sum(1 for _ in same)
        for _ in range(min(count, _REPEATED)):
            yield _frame(*place)
        if (more := count - _REPEATED) > 0:
            yield f"  [Previous line repeated {more} more time{'s' if more > 1 else ''}]\n"


def _places(trace: TracebackType | None) -> Iterator[_Place]:
    while trace is not None:
        code = trace.tb_frame.f_code
        yield code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next


def _last_lines(error: BaseException) -> list[str]:
    """What stands below the frames."""
    if not isinstance(error, RecordError) or hasattr(error, "__notes__"):
        return traceback.format_exception_only(error)
    # Python's way walks through all frames again.
    name, told = f"{type(error).__module__}.{type(error).__qualname__}", str(error)
    return [f"{name}: {told}\n" if told else f"{name}\n"]


@lru_cache(maxsize=1000)
def _frame(path: str, number: int, name: str) -> str:
    line = linecache.getline(path, number).strip()
    return f'  File "{path}", line {number}, in {name}\n' + (f"    {line}\n" if line else "")


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
    hidden: Secrets = field(default_factory=Secrets, repr=False)

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
