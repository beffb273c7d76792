"""Stack traces of errors as text, quickly: the same places raise for one bad record after the other."""

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
# As Python does: of a function that calls itself nobody needs to see more.
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
