"""Values that nobody may read in a log, a trace or an answer, and what is shown in place of each."""

from __future__ import annotations

import functools
import html
import json
import re
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from headrace.connect.errors import TaskFailedError

# Shorter ones are numbers and flags, found in every sentence; nobody's secret is so short.
_SHORTEST = 4
# Of a part of a secret, such as a line of a key: a shorter one is a word.
_SHORTEST_PART = 8
_PARTS = re.compile(r"[\r\n,]+")
_ENCODED = re.compile(r"%[0-9A-F]{2}")
# What encoders leave as it is besides letters, digits and -._~: that of object stores, Python's, JavaScript's two
# (of a part and of a whole address), and Java's.
_LEFT = ("", "/", "!'()*", "!'()*;/?:@&=+$,#", "*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Secrets, each with the *values*' text that is shown in its place. Any thread may use it.

    A secret is found as it is, as a quoted text, an address or a marked-up text has it, and in its lines or
    items.
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def masked(self, text: str, *, as_json: bool = False) -> str:
        """*text* without the secrets; what takes their place is escaped when it is *as_json*. Pure."""
        if not self.values:
            return text
        pattern, shown = _search(frozenset(self.values.items()))

        def replaced(found: re.Match[str]) -> str:
            return json.dumps(shown[found[0]])[1:-1] if as_json else shown[found[0]]

        return pattern.sub(replaced, text) if pattern else text

    def together(self, values: Mapping[str, str]) -> Hidden:
        """These and *values*; the same object when all of them are known. Pure."""
        known = values.items() <= self.values.items()
        return self if known else Hidden(values={**self.values, **values})


def told_without(hidden: Hidden, error: Exception) -> Exception:
    """*error*, or what may be raised in its place: neither it nor what it came from shows a secret.

    Changes the words of *error* itself where that is enough, so that it keeps its type.
    """
    if not _shows(hidden, error):
        return error
    for each in _chain(error):
        each.args = tuple(
            hidden.masked(word) if isinstance(word, str) else word for word in each.args
        )
    return TaskFailedError(hidden.masked(str(error))) if _shows(hidden, error) else error


@contextmanager
def kept_secret(hidden: Hidden) -> Generator[None]:
    """Let what is raised within, such as by an author's class, show nothing that is *hidden*."""
    try:
        yield
    except Exception as error:
        told = told_without(hidden, error)
        if told is error:
            raise
        raise told from None


def _shows(hidden: Hidden, error: Exception) -> bool:
    texts = (*traceback.format_exception(error), str(error))
    return any(hidden.masked(text) != text for text in texts)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = list[BaseException]()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__]
            yield each


# A connector's secrets are the same for each of its lines.
@functools.lru_cache(maxsize=64)
def _search(values: frozenset[tuple[str, str]]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    shown = dict[str, str]()
    for secret, instead in values:
        for form in forms(secret):
            shown.setdefault(form, instead)
    # The longest first: one secret may be a part of another.
    found = "|".join(map(re.escape, sorted(shown, key=len, reverse=True)))
    return (re.compile(found) if found else None), shown


def forms(secret: str) -> Iterator[str]:
    """The ways in which *secret* may be found in texts; none for one that is too short to be a secret. Pure."""
    whole = secret.strip()
    parts = [each.strip() for each in _PARTS.split(whole)]
    long = [each for each in parts if len(each) >= _SHORTEST_PART]
    # Kafka's words for a list.
    listed = ", ".join(parts)
    for text in (secret, whole, listed, *long):
        if len(text.strip()) >= _SHORTEST:
            for marked in (text, *_marked_up(text)):
                yield from (quoted(marked) for quoted in _QUOTED)
            yield from _in_address(text)


def _marked_up(text: str) -> Iterator[str]:
    yield html.escape(text, quote=False)
    escaped = html.escape(text)
    yield escaped
    yield escaped.replace("&#x27;", "&apos;")
    yield escaped.replace("&#x27;", "&#39;")
    yield escaped.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")


def _in_address(text: str) -> Iterator[str]:
    for left in _LEFT:
        for encode in (quote, quote_plus):
            # Texts from requests may have halves of a pair of code units.
            encoded = encode(text, safe=left, errors="surrogatepass")
            # Java encodes it, Python never does.
            for whole in (encoded, encoded.replace("~", "%7E")):
                yield whole
                yield _ENCODED.sub(lambda found: found[0].lower(), whole)


def _in_python(text: str) -> str:
    return repr(text)[1:-1]


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _in_plain_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


# The last two: a map that was printed, in a log of JSON lines or in an answer.
_QUOTED: tuple[Callable[[str], str], ...] = (
    str,
    _in_python,
    _in_json,
    _in_plain_json,
    lambda text: _in_json(_in_python(text)),
    lambda text: _in_plain_json(_in_python(text)),
)
