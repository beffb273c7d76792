"""Stack traces in dead letters: those of Python, made in little time."""

from __future__ import annotations

import linecache
import re
import traceback

import pytest

from headrace.connect.errors import RecordError
from headrace.task.stack_trace import trace_of


def raised(error: Exception, *, before: Exception | None = None, shown: bool = True) -> Exception:
    """*error* after it was raised, because of *before*, or only while that was handled."""
    try:
        if before is None:
            raise error
        try:
            raise before
        except ValueError as cause:
            if shown:
                raise error from cause
            raise error  # noqa: B904 (a context without a cause)
    except Exception as found:  # noqa: BLE001
        return found


def without_marks(text: str) -> str:
    """*text* of Python's, without the lines that mark a part of the line above."""
    return re.sub(r"^[ |]+[~^]+\n", "", text, flags=re.MULTILINE)


def recursive(depth: int) -> Exception:
    """An error from a function that called itself so often."""

    def down(left: int) -> None:
        if left:
            down(left - 1)
        else:
            raise RecordError("Deep.")

    try:
        down(depth)
    except RecordError as error:
        return error
    raise AssertionError


def suppressed() -> Exception:
    """An error whose context is suppressed."""
    error = raised(RecordError("It is bad."), before=ValueError(), shown=False)
    error.__suppress_context__ = True
    return error


def circular() -> Exception:
    """An error whose cause came from itself, while a third was handled."""
    first, second = RecordError("first"), RecordError("second")
    first.__cause__, second.__cause__ = second, first
    second.__context__, second.__suppress_context__ = RecordError("third"), False
    return first


class SilentError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        """As no error should."""
        raise ValueError


NOTED = RecordError("It is bad.")
NOTED.add_note("And noted.")


@pytest.mark.parametrize(
    "error",
    [
        raised(RecordError("It is bad.", native_key="f", position="byte 3")),
        raised(RecordError("It is bad."), before=ValueError("a\nb")),
        raised(RecordError("It is bad."), before=ValueError(), shown=False),
        raised(NOTED),
        RecordError("Never raised."),
        raised(RecordError("")),
        raised(RecordError("It is bad."), before=ValueError("\ud800")),
        raised(SilentError()),
        suppressed(),
        circular(),
        raised(ExceptionGroup("Two.", [raised(ValueError("1")), raised(NOTED)])),
        *(recursive(depth) for depth in (2, 3, 4, 5, 900)),
    ],
)
def test_a_trace_is_pythons_but_for_the_marks(error: Exception):
    """With causes, what was handled meanwhile, notes, groups and recursion."""
    expected = "".join(traceback.format_exception(error))

    assert without_marks(expected) == without_marks(trace_of(error))


def test_a_group_that_an_error_came_from_is_told_with_its_parts():
    """Wherever it is in the chain."""
    error = RecordError("It is bad.")
    error.__cause__ = ExceptionGroup("Two.", [ValueError("1"), TypeError("2")])

    assert "".join(traceback.format_exception(error)) == trace_of(error)


def test_an_error_that_comes_from_itself_ends():
    """As Python's own traces do."""
    first, second = RecordError("first"), RecordError("second")
    first.__cause__, second.__cause__ = second, first

    assert 1 == trace_of(first).count("first")


def test_places_are_looked_up_once(monkeypatch: pytest.MonkeyPatch):
    """However many records are bad for the same reason."""
    looked_up = list[int]()
    real = linecache.getline

    def counted(path: str, number: int) -> str:
        looked_up.append(number)
        return real(path, number)

    monkeypatch.setattr(linecache, "getline", counted)
    for row in range(50):
        trace_of(raised(RecordError(f"Row {row} is bad."), before=ValueError()))

    assert len(looked_up) <= 3
