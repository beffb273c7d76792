"""What a failure of Spark says, short enough for one line. Pure, but for what Java is asked."""

from __future__ import annotations

import logging
import re

_log = logging.getLogger(__name__)

# py4j's own first line names an internal call; Java's exception is on the next one.
_CALLING = re.compile(r"An error occurred while calling .*\.")
_FRAME = re.compile(r"at [\w.$/<>]+\(.*\)|\.\.\. \d+ more")
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


def full_text(error: Exception) -> str:
    """The text of *error*, also when it cannot be had: Java's is asked for in a process that may be gone."""
    try:
        return str(error)
    except Exception as gone:  # noqa: BLE001 - whatever it is, it is not the reason that is looked for
        _log.debug("The text of a %s could not be read: %s", type(error).__name__, gone)
        return f"{type(error).__name__}, and Spark's Java process has ended"
