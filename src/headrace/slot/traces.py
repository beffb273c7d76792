"""Stack traces of errors as text, quickly: the same places raise for one bad record after the other."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator
from functools import lru_cache
from types import TracebackType
from typing import Final

from headrace.connect.errors import RecordError

_BECAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"


def trace_of(error: BaseException) -> str:
    """*error* with the errors before it, as Python prints them, but for the marks below lines."""
    return "".join(piece for each in reversed([*_chain(error)]) for piece in each)


def _chain(error: BaseException) -> Iterator[list[str]]:
    """The pieces of *error*, and then those of each one that it came from."""
    seen = set[int]()
    link = ""
    told: BaseException | None = error
    while told is not None and id(told) not in seen:
        seen.add(id(told))
        yield [*_frames(told.__traceback__), *_last_lines(told), link]
        if told.__cause__ is not None:
            told, link = told.__cause__, _BECAUSE
        else:
            told, link = None if told.__suppress_context__ else told.__context__, _DURING


def _frames(trace: TracebackType | None) -> Iterator[str]:
    if trace is not None:
        yield "Traceback (most recent call last):\n"
    while trace is not None:
        code = trace.tb_frame.f_code
        yield _frame(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next


def _last_lines(error: BaseException) -> list[str]:
    """What stands below the frames."""
    if not isinstance(error, RecordError) or hasattr(error, "__notes__"):
        return traceback.format_exception_only(error)
    # Python's way walks through all frames again.
    return [f"{type(error).__module__}.{type(error).__qualname__}: {error}\n"]


@lru_cache(maxsize=1000)
def _frame(path: str, number: int, name: str) -> str:
    line = linecache.getline(path, number).strip()
    return f'  File "{path}", line {number}, in {name}\n' + (f"    {line}\n" if line else "")
