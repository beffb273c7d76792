"""Java's regular expressions, as far as Python's can say the same; anything else is refused, never misread."""

from __future__ import annotations

import functools
import re

from headrace.connect.java_regex_syntax import translated


@functools.cache
def java_regex(pattern: str) -> re.Pattern[str]:
    """*pattern* for Python. Pure. Raises ``ValueError`` with a sentence for what is no pattern, or has no equal."""
    try:
        return re.compile(translated(pattern), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"Invalid regex: {error}") from None


def regex_problem(pattern: str) -> str | None:
    """What is wrong with *pattern*, or ``None``; for settings."""
    try:
        java_regex(pattern)
    except ValueError as error:
        return str(error)
    return None
