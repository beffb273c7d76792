"""The ways in which a secret may be found in texts."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

from headrace.observe.secret_pieces import pieces

# Shorter ones are flags, found in every sentence; nobody's secret is so short.
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
