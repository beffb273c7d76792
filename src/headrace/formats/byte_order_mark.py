"""The byte order mark that a text may begin with."""

from __future__ import annotations

from typing import Final

from headrace.connect.errors import RecordError

UTF8: Final = "utf-8"

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_MARKS: Final = {
    _UTF8_MARK: "UTF-8",
    b"\xff\xfe": "UTF-16 (little endian)",
    b"\xfe\xff": "UTF-16 (big endian)",
}


def mark_bytes(head: bytes, encoding: str) -> int:
    """How many bytes of *head*, the first ones of a text in *encoding*, are its mark and no text.

    Raises :class:`~headrace.connect.errors.RecordError` when the mark is that of another encoding.
    """
    told = next((told for mark, told in _MARKS.items() if head.startswith(mark)), None)
    if told is None:
        return 0
    if encoding != UTF8:
        raise RecordError(
            position="byte 0",
            reason=f"The byte order mark says {told}, but files.encoding says {encoding}.",
            advice=f"Read the file with a connector of its own, or convert it to {encoding}.",
        )
    if not head.startswith(_UTF8_MARK):
        raise RecordError(
            position="byte 0",
            reason=f"The byte order mark says {told}, but only UTF-8 is read.",
            advice="Convert the file to UTF-8, for example with iconv.",
        )
    return len(_UTF8_MARK)
