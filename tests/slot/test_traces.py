"""Stack traces in dead letters: those of Python, made in little time."""

from __future__ import annotations

import linecache
import traceback

import pytest

from headrace.connect.errors import RecordError
from headrace.slot.traces import trace_of


def raised(error: Exception, *, before: Exception | None = None, told: bool = True) -> Exception:
    """*error* after it was raised, because of *before*, or only while that was handled."""
    try:
        if before is None:
            raise error
        try:
            raise before
        except ValueError as cause:
            if told:
                raise error from cause
            raise error  # noqa: B904 (a context without a cause)
    except Exception as found:  # noqa: BLE001
        return found


def without_marks(text: str) -> str:
    """*text* of Python's, without the lines that mark a part of the line above."""
    return "".join(
        line for line in text.splitlines(keepends=True) if line.strip(" ~^\n") or line == "\n"
    )


NOTED = RecordError("It is bad.")
NOTED.add_note("And noted.")


@pytest.mark.parametrize(
    "error",
    [
        raised(RecordError("It is bad.", native_key="f", position="byte 3")),
        raised(RecordError("It is bad."), before=ValueError("a\nb")),
        raised(RecordError("It is bad."), before=ValueError(), told=False),
        raised(NOTED),
        RecordError("Never raised."),
    ],
)
def test_a_trace_is_pythons_but_for_the_marks(error: Exception):
    """With causes, what was handled meanwhile, and notes."""
    assert without_marks("".join(traceback.format_exception(error))) == trace_of(error)


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
