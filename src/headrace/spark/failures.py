"""Extracts short messages from Spark's errors, and recognises errors that a retry would repeat."""

from __future__ import annotations

import logging
import re
import textwrap

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
)

_log = logging.getLogger(__name__)

# py4j's own first line names an internal call; Java's exception is on the next one.
_CALLING = re.compile(r"An error occurred while calling .*\.")
_FRAME = re.compile(r"at [\w.$/<>]+\(.*\)|\.\.\. \d+ more")
_PLACE = re.compile(r";? *line \d+ pos \d+;?$")


_OF_PYTHON = re.compile(
    r"^Error from python worker:\n(.+?)^PYTHONPATH was:", re.DOTALL | re.MULTILINE
)
_PYTHON_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)


def python_ending(error: Exception) -> str | None:
    """What a Python process of slots wrote when it ended at its start, usually a traceback; ``None`` for other errors."""
    found = _OF_PYTHON.search(full_text(error))
    return None if found is None else textwrap.dedent(found[1]).rstrip()


def in_short(error: Exception) -> str:
    """The first and the last line of a long message; Python tracebacks have their reason in the last.

    Frames of Java stack traces are left out. Of a Python process that ended at its start, it is that process's error.
    """
    if ending := python_ending(error):
        places = _PYTHON_FRAME.findall(ending)
        where = f" ({places[-1][0]}, line {places[-1][1]})" if places else ""
        reason = ending.splitlines()[-1].rstrip(".")
        return f"a Python process of its slots ended at its start: {reason}{where}"
    lines = [line.strip().removeprefix(": ") for line in full_text(error).splitlines()]
    kept = [each for each in lines if each and not _FRAME.fullmatch(each)]
    if len(kept) > 1 and _CALLING.fullmatch(kept[0]):
        del kept[0]
    ends = kept[:1] + kept[1:][-1:]
    return " … ".join(ends).rstrip(".") or type(error).__name__


def of_analysis(error: Exception) -> str:
    """Spark's message about an expression or a DataFrame that it refuses, without the query plan."""
    lines = (line.strip() for line in full_text(error).splitlines())
    return _PLACE.sub("", next(filter(None, lines), type(error).__name__)).rstrip(";.") + "."


def full_text(error: Exception) -> str:
    """The text of *error*, or a substitute: Java's text is fetched from a process that may be gone."""
    try:
        return str(error)
    except Exception as gone:  # noqa: BLE001 - a second error must not hide the first
        _log.debug("The text of a %s could not be read: %s", type(error).__name__, gone)
        return f"{type(error).__name__}, and Spark's Java process has ended"


# The SQLSTATE classes that are about data and expressions; raise_error has P0001.
# Others, such as 53 (resources), 58 (the system) and XX (Spark itself), may be temporary.
_OF_DATA = re.compile(
    r"\[[A-Z][A-Z0-9_.]+\] (?:(?!\[[A-Z][A-Z0-9_.]+\] |\n\s*at ).)*?SQLSTATE: (?:0A|2[123F]|39|42|54|P0)\w{3}",
    re.DOTALL,
)
# A Spark task fails with these when Java's library refuses a value; errors of threads and files are not included.
_OF_JAVA = re.compile(
    r"Lost task [^\n]*?\): (java\.(?:lang|math|text|time|util)\.(?!concurrent)[\w.]*Exception(?::[^\n]*)?)"
)
_MAY_PASS = ("IllegalState", "Interrupted")
# For these PySpark has classes of its own, whose messages do not name Java's class.
_CONVERTED = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
)
_SQL = re.compile(r"== SQL(?: \([^)]*\))? ==\s*\n([^\n]+)")
_ADVICE = (
    "Use a variant that returns null instead, such as try_cast, try_divide, try_to_timestamp or try_element_at, or "
    "exclude such records with where."
)


def of_expression(error: Exception) -> str | None:
    """Spark's message about a value that an expression refused, with advice; ``None`` for other errors.

    A retry of such a job would fail again.
    """
    text = full_text(error)
    found, expression = _of_value(error, text), _SQL.search(text)
    if found is None:
        return None
    where = "" if expression is None else f" The expression is {expression[1].strip()}."
    return (
        f"{' '.join(found.split()).rstrip('.')}.{where} errors.tolerance does not apply. {_ADVICE}"
    )


def _of_value(error: Exception, text: str) -> str | None:
    if found := _OF_DATA.search(text):
        return found[0]
    found = _OF_JAVA.search(text)
    if found and not any(each in found[1] for each in _MAY_PASS):
        return found[1]
    return text.partition("\n")[0] if isinstance(error, _CONVERTED) else None
