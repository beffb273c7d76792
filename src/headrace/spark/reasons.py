"""What a failure of Spark says, short enough for one line. Pure, but for what Java is asked."""

from __future__ import annotations

import logging
import re

_log = logging.getLogger(__name__)

# py4j's own first line names an internal call; Java's exception is on the next one.
_CALLING = re.compile(r"An error occurred while calling .*\.")
_FRAME = re.compile(r"at [\w.$/<>]+\(.*\)|\.\.\. \d+ more")
# Standard SQL's class 22 is what is wrong with data; P0001 is what raise_error says.
_OF_DATA = re.compile(r"(\[[A-Z0-9_.]+\] [^\n]*?SQLSTATE: (?:22\w{3}|P0001))")
_SQL = re.compile(r"== SQL(?: \([^)]*\))? ==\s*\n([^\n]+)")
_ADVICE = (
    "Use a form that gives null instead, such as try_cast, try_divide, try_to_timestamp or try_element_at, or leave "
    "such records out with where."
)
_PLACE = re.compile(r";? *line \d+ pos \d+;?$")


def in_short(error: Exception) -> str:
    """The first line of a long message, and its last, where Python's tracebacks have the reason.

    The frames of Java's traces are left out.
    """
    lines = [line.strip().removeprefix(": ") for line in full_text(error).splitlines()]
    kept = [each for each in lines if each and not _FRAME.fullmatch(each)]
    if len(kept) > 1 and _CALLING.fullmatch(kept[0]):
        del kept[0]
    ends = kept[:1] + kept[1:][-1:]
    return " … ".join(ends).rstrip(".") or type(error).__name__


def of_analysis(error: Exception) -> str:
    """What Spark says about an expression or a DataFrame that it refuses, without the plan behind it."""
    lines = (line.strip() for line in full_text(error).splitlines())
    return _PLACE.sub("", next(filter(None, lines), type(error).__name__)).rstrip(";.") + "."


def of_expression(error: Exception) -> str | None:
    """What Spark says of a value that an expression of a job could not take, and what to do; else ``None``.

    Tried again, such a job fails again.
    """
    text = full_text(error)
    found, expression = _OF_DATA.search(text), _SQL.search(text)
    if found is None:
        return None
    where = "" if expression is None else f" The expression is {expression[1].strip()}."
    return f"{found[1]}.{where} errors.tolerance does not help. {_ADVICE}"


def full_text(error: Exception) -> str:
    """The text of *error*, also when it cannot be had: Java's is asked for in a process that may be gone."""
    try:
        return str(error)
    except Exception as gone:  # noqa: BLE001 - whatever it is, it is not the reason that is looked for
        _log.debug("The text of a %s could not be read: %s", type(error).__name__, gone)
        return f"{type(error).__name__}, and Spark's Java process has ended"
