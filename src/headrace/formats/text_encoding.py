"""Encodings of one byte per character whose lower half is ASCII, as tables."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_ASCII: Final = 128
_BYTES: Final = 256
# Undefined bytes become lone surrogates, which no UTF-8 may hold, so that every check of UTF-8 finds them.
_NO_CHARACTER: Final = 0xDC00


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEncoding:
    """*name* is Python's own for it, the same for all its aliases; *characters* are those of the 256 bytes.

    A byte without a character has a lone surrogate there.
    """

    name: str
    characters: str

    def utf8(self, text: bytes) -> bytes:
        """*text* as UTF-8. Of a byte that is no character comes what is not UTF-8."""
        # The type of the table is that of encoders only, as far as the stubs know.
        table: Any = self.characters
        return codecs.charmap_decode(text, "strict", table)[0].encode("utf-8", "surrogatepass")

    def first_undefined(self, text: bytes) -> int:
        """Where *text* has the first byte that is no character, or -1."""
        for at, code in enumerate(text):
            if ord(self.characters[code]) == _NO_CHARACTER + code:
                return at
        return -1


@cache
def encoding_named(name: str) -> TextEncoding | None:
    """The encoding that Python calls *name*; ``None`` for UTF-8, which rows are in anyway.

    Raises ``ValueError`` with a sentence for an unknown one, and for one that cannot be read.
    """
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        raise ValueError(
            f"{name!r} is no encoding that is known. Correct the name, as in iso-8859-1 or windows-1252."
        ) from None
    if info.name in ("utf-8", "utf-8-sig"):
        return None
    found = _characters(name, info)
    if found[:_ASCII] != [chr(code) for code in range(_ASCII)] or "" in found:
        raise ValueError(
            f"{name!r} is not read: only UTF-8 is, and encodings of one byte per character whose first "
            f"128 are ASCII. Convert the files to UTF-8 before, for example with iconv -f {name} -t UTF-8."
        )
    characters = [
        chr(_NO_CHARACTER + at) if each is None else each for at, each in enumerate(found)
    ]
    return TextEncoding(name=info.name, characters="".join(characters))


def _characters(name: str, info: codecs.CodecInfo) -> list[str | None]:
    """The characters of all bytes; none at all of what is no encoding of text, or cannot read a byte alone."""
    try:
        b"a".decode(name)
    except (LookupError, ValueError):
        return []
    return [_character(info, code) for code in range(_BYTES)]


def _character(info: codecs.CodecInfo, code: int) -> str | None:
    """The character of the byte *code*; ``None`` for none, "" when more bytes would have to follow."""
    try:
        found = info.incrementaldecoder().decode(bytes([code]))
    except UnicodeError:
        return None
    return found if len(found) == 1 else ""
