"""Failures of a job that are about a value, and come again whenever it is read. Pure, but for what Java is asked."""

from __future__ import annotations

import re

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
)

from headrace.spark.reasons import full_text

# The classes of Standard SQL's states that are about data and expressions; P0001 is what raise_error says.
# Others, such as 53 (resources), 58 (the system) and XX (Spark itself), may pass.
_OF_DATA = re.compile(
    r"\[[A-Z][A-Z0-9_.]+\] (?:(?!\[[A-Z][A-Z0-9_.]+\] |\n\s*at ).)*?SQLSTATE: (?:0A|2[123F]|39|42|54|P0)\w{3}",
    re.DOTALL,
)
# What a task of Spark fails with where Java's own library refuses a value. Java's threads and files are not meant.
_OF_JAVA = re.compile(
    r"Lost task [^\n]*?\): (java\.(?:lang|math|text|time|util)\.(?!concurrent)[\w.]*Exception(?::[^\n]*)?)"
)
_MAY_PASS = ("IllegalState", "Interrupted")
# What PySpark has classes for comes without the name of Java's.
_CONVERTED = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
)
_SQL = re.compile(r"== SQL(?: \([^)]*\))? ==\s*\n([^\n]+)")
_ADVICE = (
    "Use a form that gives null instead, such as try_cast, try_divide, try_to_timestamp or try_element_at, or leave "
    "such records out with where."
)


def of_expression(error: Exception) -> str | None:
    """What Spark says of a value that an expression of a job could not take, and what to do; else ``None``.

    Tried again, such a job fails again.
    """
    text = full_text(error)
    found, expression = _of_value(error, text), _SQL.search(text)
    if found is None:
        return None
    where = "" if expression is None else f" The expression is {expression[1].strip()}."
    return (
        f"{' '.join(found.split()).rstrip('.')}.{where} errors.tolerance does not help. {_ADVICE}"
    )


def _of_value(error: Exception, text: str) -> str | None:
    if found := _OF_DATA.search(text):
        return found[0]
    found = _OF_JAVA.search(text)
    if found and not any(each in found[1] for each in _MAY_PASS):
        return found[1]
    return text.partition("\n")[0] if isinstance(error, _CONVERTED) else None
