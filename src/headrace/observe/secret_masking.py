"""Secrets, and what is shown in their place in logs, traces, answers and what is printed."""

from __future__ import annotations

import functools
import html
import io
import json
import posixpath
import re
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final, TextIO, cast
from urllib.parse import quote, quote_plus, unquote

from headrace.connect.errors import TaskFailedError
from headrace.observe.events import Event, EventListener

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
    """The parts of *secret* that no one may read either, and the ways to write it again as a path. Pure.

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


# Shorter ones are flags, found in every sentence; no one's secret is so short.
_SHORTEST = 4
# Ports, sizes and switches: every line of a log has some.
_PLAIN = re.compile(r"true|false|[+-]?\d{1,5}", re.IGNORECASE)
_ENCODED = re.compile(r"%[0-9A-F]{2}")
# What encoders leave as it is besides letters, digits and -._~: that of object stores, Python's, JavaScript's two
# (of a part and of a whole address), and Java's.
_LEFT = ("", "/", "!'()*", "!'()*;/?:@&=+$,#", "*")


def forms(secret: str) -> Iterator[str]:
    """How *secret* and its pieces may be written; nothing for what is too short or too plain for a secret. Pure."""
    if _PLAIN.fullmatch(secret.strip()):
        return
    for text in (secret, secret.strip(), *pieces(secret)):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Secrets, each with the *values*' text that is shown in its place. Any thread may use it.

    A secret is found as it is, as a quoted text, an address or a marked-up text has it, and in its pieces
    (:func:`~headrace.observe.secret_masking.pieces`).
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

    def together(self, values: Mapping[str, str]) -> Secrets:
        """These and *values*; the same object when all of them are known. Pure."""
        known = values.items() <= self.values.items()
        return self if known else Secrets(values={**self.values, **values})


def without_secrets(hidden: Secrets, error: Exception) -> Exception:
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
def kept_secret(hidden: Secrets) -> Generator[None]:
    """Let what is raised within, such as by an author's class, show nothing that is *hidden*."""
    try:
        yield
    except Exception as error:
        told = without_secrets(hidden, error)
        if told is error:
            raise
        raise told from None


def _shows(hidden: Secrets, error: Exception) -> bool:
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


# Free text; other fields are names and numbers that listeners work with.
_TEXTS = ("reason", "trace")


def hiding(emit: EventListener, hidden: Secrets) -> EventListener:
    """*tell*, with nothing of what is *hidden* in the sentences of its events."""

    def told(event: Event) -> None:
        masked: dict[str, Any] = {
            name: hidden.masked(text)
            for name in _TEXTS
            if isinstance(text := getattr(event, name, None), str)
        }
        emit(replace(event, **masked) if masked else event)

    return told


Mask = Callable[[str], str]

# Of a line that does not end, such as a bar of progress without a flush; more is not held back.
_LONGEST = 1 << 20


class MaskedStream(io.TextIOBase):
    """Passes what is printed on to *stream* as *mask* shows it, in whole lines or up to a flush. Any thread may write.

    A print writes its words one by one, and a secret may have several.
    """

    def __init__(self, stream: TextIO) -> None:
        self.mask: Mask = str
        self._stream = stream
        self._waiting = ""
        # A handler of a signal may print while its own thread does.
        self._lock = threading.RLock()

    def write(self, text: str, /) -> int:
        """Take *text*; the stream gets it with the end of its line."""
        with self._lock:
            self._waiting += text
            lines, end, rest = self._waiting.rpartition("\n")
            if len(rest) > _LONGEST:
                lines, end, rest = self._waiting, "", ""
            self._waiting = rest
            if lines or end:
                self._stream.write(self.mask(lines + end))
        return len(text)

    def flush(self) -> None:
        """Pass on a line that has not ended, too."""
        with self._lock:
            waiting, self._waiting = self._waiting, ""
            # The interpreter flushes at its end what somebody may have closed.
            if not self._stream.closed:
                self._stream.write(self.mask(waiting))
                self._stream.flush()

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """As the stream."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's; what is written there is not masked."""
        return self._stream.fileno()

    @property
    def buffer(self) -> BinaryIO:
        """The stream's; what is written there is not masked."""
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's."""
        return self._stream.encoding


# One for each: an author's module may keep it while one connector after another uses the process.
@functools.cache
def _masked(stream: TextIO) -> MaskedStream:
    return MaskedStream(stream)


@contextmanager
def printed_as(mask: Mask) -> Generator[None]:
    """Let what is printed within be as *mask* shows it, on standard output and standard error.

    What keeps the streams for longer is masked in the same way until the next time. Called by a thread that
    no one else does this beside.
    """
    before = (sys.stdout, sys.stderr)
    streams = (_masked(sys.stdout), _masked(sys.stderr))
    for each in streams:
        each.mask = mask
    sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", streams)
    try:
        yield
    finally:
        for each in streams:
            each.flush()
        sys.stdout, sys.stderr = before
