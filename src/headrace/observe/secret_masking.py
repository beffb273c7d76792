"""Masks secrets in logs, traces, answers and printed output."""

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
"""The minimum length of a piece that is masked: shorter ones are words and numbers of any sentence."""

# Kafka's lists, and files with one secret a line.
_ITEMS = re.compile(r"[\r\n,]+")
# A text with more items is a key or a table: its lines are random, and pieces of them would only cost time.
_MOST_ITEMS = 20
# Separators at which programs split an item, the coarse before the fine, so that a password with a slash in it
# is found as a whole before its halves are.
_SEPARATORS = tuple(map(re.compile, (r"[\s;&?#\"'|{}]+", r"://|@", r":", r"[/\\]+")))
# A key in a connection string is not a secret; its value may be one.
_NAME = re.compile(r"^[A-Za-z_][\w.-]*=(?!=|$)")
# Words of a language, and dates, with which each log line begins.
_WORD = re.compile(r"(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})=?|\d{4}-?\d\d-?\d\d")
_HOST = re.compile(r"[\w.-]+")
# A password may be a word, if it is in the place of a password.
_PASSWORD = re.compile(
    r"//[^\s/:@]*:([^\s/@]+)@|(?:pass|pwd|secret|token|key|sig)[\w.-]*[\"']?\s*[=:]\s*[\"']?([^\s\"';&,]+)",
    re.IGNORECASE,
)


def pieces(secret: str) -> Iterator[str]:
    """The parts of *secret* that must be masked as well, and its other forms as a path. Pure.

    A part has :data:`SHORTEST` characters or more. A part of a line or an item that is merely a word, a name or a
    date is left out, unless it is in the place of a password. A percent-encoded part is decoded.
    """
    whole = secret.strip()
    items = [each.strip() for each in _ITEMS.split(whole)]
    # As Kafka prints a list.
    yield ", ".join(items)
    yield from _as_paths(whole)
    taken_apart = _parts(items) if len(items) <= _MOST_ITEMS else ()
    for part in filter(_is_long, [*items, *taken_apart, *_passwords(whole)]):
        yield part
        yield unquote(part)
        if _HOST.fullmatch(part) and _is_distinctive(part.lower()):
            # Host names are looked up in lower case.
            yield part.lower()


def _as_paths(whole: str) -> Iterator[str]:
    for path in (whole.rstrip("/"), posixpath.normpath(whole)):
        if "/" in path or _is_distinctive(path):
            yield path


def _parts(texts: Iterable[str]) -> Iterator[str]:
    for separator in _SEPARATORS:
        split = (_NAME.sub("", each) for text in texts for each in separator.split(text))
        texts = [*dict.fromkeys(split)]
        yield from filter(_is_distinctive, texts)


def _passwords(whole: str) -> Iterator[str]:
    yield from (found[1] or found[2] for found in _PASSWORD.finditer(whole))


def _is_distinctive(part: str) -> bool:
    return _is_long(part) and not _WORD.fullmatch(part)


def _is_long(part: str) -> bool:
    return len(part) >= SHORTEST


# Shorter values are flags, which occur in every sentence; no secret is that short.
_SHORTEST = 4
# Ports, sizes and switches, which occur in every log line.
_PLAIN = re.compile(r"true|false|[+-]?\d{1,5}", re.IGNORECASE)
_ENCODED = re.compile(r"%[0-9A-F]{2}")
# Characters that encoders do not encode besides letters, digits and -._~: those of object stores, Python, JavaScript
# (for a component and for a whole URI), and Java.
_LEFT = ("", "/", "!'()*", "!'()*;/?:@&=+$,#", "*")


def forms(secret: str) -> Iterator[str]:
    """How *secret* and its pieces may be written; nothing for values too short or too plain to be secrets. Pure."""
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
            # Texts from requests may have unpaired surrogates.
            encoded = encode(text, safe=left, errors="surrogatepass")
            # Java encodes the tilde, Python never does.
            for whole in (encoded, encoded.replace("~", "%7E")):
                yield whole
                yield _ENCODED.sub(lambda found: found[0].lower(), whole)


def _in_python(text: str) -> str:
    return repr(text)[1:-1]


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _in_plain_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


# The last two: a printed map in a log of JSON lines, or in an answer.
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
    """Secrets, the keys of *values*, each with the text that is shown in its place. Any thread may use it.

    A secret is found literally, quoted, percent-encoded or escaped as HTML, and in its pieces
    (:func:`~headrace.observe.secret_masking.pieces`).
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def masked(self, text: str, *, as_json: bool = False) -> str:
        """*text* without the secrets; with *as_json* the replacements are escaped. Pure."""
        if not self.values:
            return text
        pattern, shown = _search(frozenset(self.values.items()))

        def replaced(found: re.Match[str]) -> str:
            return json.dumps(shown[found[0]])[1:-1] if as_json else shown[found[0]]

        return pattern.sub(replaced, text) if pattern else text

    def together(self, values: Mapping[str, str]) -> Secrets:
        """These and *values*; the same object when it has all of them. Pure."""
        known = values.items() <= self.values.items()
        return self if known else Secrets(values={**self.values, **values})


def without_secrets(secrets: Secrets, error: Exception) -> Exception:
    """*error*, or an error to raise in its place; neither it nor its causes show a secret.

    Masks the arguments of *error* itself if that is sufficient, so that it keeps its type.
    """
    if not _shows(secrets, error):
        return error
    for each in _chain(error):
        each.args = tuple(
            secrets.masked(word) if isinstance(word, str) else word for word in each.args
        )
    return TaskFailedError(secrets.masked(str(error))) if _shows(secrets, error) else error


@contextmanager
def masked_exceptions(secrets: Secrets) -> Generator[None]:
    """Mask *secrets* in exceptions of the block, such as those of a plugin."""
    try:
        yield
    except Exception as error:
        masked = without_secrets(secrets, error)
        if masked is error:
            raise
        raise masked from None


def _shows(secrets: Secrets, error: Exception) -> bool:
    texts = (*traceback.format_exception(error), str(error))
    return any(secrets.masked(text) != text for text in texts)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = list[BaseException]()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__]
            yield each


# A connector has the same secrets for each of its lines.
@functools.lru_cache(maxsize=64)
def _search(values: frozenset[tuple[str, str]]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    shown = dict[str, str]()
    for secret, instead in values:
        for form in forms(secret):
            shown.setdefault(form, instead)
    # The longest first: one secret may be a part of another.
    found = "|".join(map(re.escape, sorted(shown, key=len, reverse=True)))
    return (re.compile(found) if found else None), shown


# Fields with free text; the others are names and numbers that listeners need unchanged.
_TEXTS = ("reason", "trace")


def masking_listener(emit: EventListener, secrets: Secrets) -> EventListener:
    """A listener that passes events on to *emit* with *secrets* masked in their texts."""

    def emit_masked(event: Event) -> None:
        masked: dict[str, Any] = {
            name: secrets.masked(text)
            for name in _TEXTS
            if isinstance(text := getattr(event, name, None), str)
        }
        emit(replace(event, **masked) if masked else event)

    return emit_masked


Mask = Callable[[str], str]

# The most that is buffered of a line without an end, such as a progress bar without a flush.
_LONGEST = 1 << 20


class MaskedStream(io.TextIOBase):
    """Passes printed text on to *stream* through *mask*, in whole lines or up to a flush. Any thread may write.

    A print writes its arguments one by one, and a secret may span several.
    """

    def __init__(self, stream: TextIO) -> None:
        self.mask: Mask = str
        self._stream = stream
        self._waiting = ""
        # Reentrant: a signal handler may print while its own thread does.
        self._lock = threading.RLock()

    def write(self, text: str, /) -> int:
        """Buffer *text*; the stream gets whole lines."""
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
        """Pass on the unfinished line as well."""
        with self._lock:
            waiting, self._waiting = self._waiting, ""
            # At its end the interpreter flushes streams that may already be closed.
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


# One per stream: a plugin may keep it while one connector after another uses the process.
@functools.cache
def _masked(stream: TextIO) -> MaskedStream:
    return MaskedStream(stream)


@contextmanager
def printed_as(mask: Mask) -> Generator[None]:
    """Pass text printed in the block through *mask*, on standard output and standard error.

    Code that keeps the streams for longer is masked in the same way until the next call. No two threads may do
    this at the same time.
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
