"""What of a secret shows when a program has taken it apart: a list, a path, an address, a connection's line."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

SHORTEST: Final = 8
"""Characters of the shortest piece that is looked for: shorter ones are words and numbers of any sentence."""

# Kafka's lists, and files with one secret a line.
_ITEMS = re.compile(r"[\r\n,]+")
# A text of more is a key or a table: its lines are random, and pieces of them would only cost time.
_MOST_ITEMS = 20
# What programs take an item apart at, the coarse before the fine, so that a password with a slash in it is
# found as a whole before its halves are.
_SEPARATORS = tuple(map(re.compile, (r"[\s;&?#\"'|{}]+", r"://|@", r":", r"[/\\]+")))
# A name is no secret, and a line for a connection is full of them; what stands behind it may be one.
_NAME = re.compile(r"^[A-Za-z_][\w.-]*=(?!=|$)")
# Words of a language, and days, which the head of each line in a log has.
_WORD = re.compile(r"(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})=?|\d{4}-?\d\d-?\d\d")
_HOST = re.compile(r"[\w.-]+")
# A password may be a word where its place tells that it is one.
_PASSWORD = re.compile(
    r"//[^\s/:@]*:([^\s/@]+)@|(?:pass|pwd|secret|token|key|sig)[\w.-]*[\"']?\s*[=:]\s*[\"']?([^\s\"';&,]+)",
    re.IGNORECASE,
)


def pieces(secret: str) -> Iterator[str]:
    """The parts of *secret* that nobody may read either, and the ways to write it anew as a path. Pure.

    A part has :data:`SHORTEST` characters or more. One of a line or an item is not merely a word, a name or a
    day, unless it stands where a password does. A percent-encoded part is decoded.
    """
    whole = secret.strip()
    items = [each.strip() for each in _ITEMS.split(whole)]
    # Kafka's words for a list.
    yield ", ".join(items)
    yield from _as_paths(whole)
    taken_apart = _parts(items) if len(items) <= _MOST_ITEMS else ()
    for part in filter(_is_long, [*items, *taken_apart, *_passwords(whole)]):
        yield part
        yield unquote(part)
        if _HOST.fullmatch(part) and _is_telling(part.lower()):
            # As a host is looked up.
            yield part.lower()


def _as_paths(whole: str) -> Iterator[str]:
    for path in (whole.rstrip("/"), posixpath.normpath(whole)):
        if "/" in path or _is_telling(path):
            yield path


def _parts(texts: Iterable[str]) -> Iterator[str]:
    for separator in _SEPARATORS:
        split = (_NAME.sub("", each) for text in texts for each in separator.split(text))
        texts = [*dict.fromkeys(split)]
        yield from filter(_is_telling, texts)


def _passwords(whole: str) -> Iterator[str]:
    yield from (found[1] or found[2] for found in _PASSWORD.finditer(whole))


def _is_telling(part: str) -> bool:
    return _is_long(part) and not _WORD.fullmatch(part)


def _is_long(part: str) -> bool:
    return len(part) >= SHORTEST
