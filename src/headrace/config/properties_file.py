"""Java's ``.properties`` files, read as ``java.util.Properties`` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
# A key ends at the first separator that is not escaped by a backslash.
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parsed_properties(content: bytes) -> dict[str, str]:
    r"""The keys and values of *content*, which is ISO-8859-1; other characters come as ``\uXXXX``.

    The last value of a key counts. Raises ``ValueError`` for a ``\u`` without four hexadecimal digits.
    """
    return dict(property_pairs(content))


def property_pairs(content: bytes) -> Iterator[tuple[str, str]]:
    """As :func:`parsed_properties`, each line by itself: a key may come more than once."""
    for line in _logical_lines(content.decode("iso-8859-1")):
        key = _matched(_KEY, line)
        rest = line[len(key) :]
        yield _unescaped(key), _unescaped(rest[len(_matched(_SEPARATOR, rest)) :])


def _matched(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match.group() if match else ""


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without blank ones and comments; lines joined by a backslash at the end are one.

    As in Java, a line of nothing but a backslash joins nothing: the next line starts a new one.
    """
    line = ""
    for natural in _LINE_END.split(text):
        part = natural.lstrip(_BLANK)
        if not line and (not part or part[0] in "#!"):
            continue
        line += part
        if _continues(line):
            line = line[:-1]
            continue
        yield line
        line = ""
    if line:
        yield line


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    units = _ESCAPE.sub(_character, text)
    # Two escapes may be the halves of one character.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    if escaped == "u":
        raise ValueError(r"Malformed \uxxxx encoding.")
    return _LETTERS.get(escaped, escaped)
