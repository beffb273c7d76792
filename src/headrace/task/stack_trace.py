"""The stack trace of an error, as the traceback module prints it, but quick enough for each bad record."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from types import TracebackType
from typing import Final

from headrace.connect.errors import RecordError

_BECAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"
# Python's own limit for repeated lines of a recursive function.
_REPEATED: Final = 3
_Place = tuple[str, int, str]


def trace_of(error: BaseException) -> str:
    """*error* with its causes as Python prints them, but without the markers below source lines."""
    chain = [*_chain(error)]
    if any(isinstance(each, BaseExceptionGroup) for each, _ in chain):
        # Rare, and printed as a tree.
        return "".join(traceback.format_exception(error))
    return "".join(piece for each, link in reversed(chain) for piece in _pieces(each, link))


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """*error* and then each cause, with the text that Python prints between a cause and the error after it."""
    seen = set[int]()
    link = ""
    current: BaseException | None = error
    while current is not None:
        seen.add(id(current))
        yield current, link
        cause, context = current.__cause__, current.__context__
        if cause is not None and id(cause) not in seen:
            current, link = cause, _BECAUSE
        elif context is not None and id(context) not in seen and not current.__suppress_context__:
            current, link = context, _DURING
        else:
            current = None


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
    """The lines after the frames: the type and message of *error*."""
    if not isinstance(error, RecordError) or hasattr(error, "__notes__"):
        return traceback.format_exception_only(error)
    # Quicker than the traceback module, which would walk all frames again.
    name, message = f"{type(error).__module__}.{type(error).__qualname__}", str(error)
    return [f"{name}: {message}\n" if message else f"{name}\n"]


@lru_cache(maxsize=1000)
def _frame(path: str, number: int, name: str) -> str:
    line = linecache.getline(path, number).strip()
    return f'  File "{path}", line {number}, in {name}\n' + (f"    {line}\n" if line else "")
