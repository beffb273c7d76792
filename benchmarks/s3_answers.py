"""What a server that speaks a little of S3 answers, as far as reading needs it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<Name>benchmark</Name><EncodingType>url</EncodingType>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An object in a listing."""

    key: str
    size: int
    etag: str


def page(objects: Iterable[Listed], *, token: str | None) -> bytes:
    """A page of ListObjectsV2; *token* is where the next one begins, ``None`` after the last."""
    more = "" if token is None else f"<NextContinuationToken>{token}</NextContinuationToken>"
    cut = "false" if token is None else "true"
    listed = "".join(map(_contents, objects))
    tail = f"<IsTruncated>{cut}</IsTruncated>{more}</ListBucketResult>"
    return f"{_HEAD}{listed}{tail}".encode()


def ranged(header: str | None, size: int) -> range:
    """The bytes of an object of *size* bytes that a ``Range`` header requests; all of them without one."""
    found = _RANGE.fullmatch(header or "")
    if found is None:
        return range(size)
    return range(int(found[1]), min(size, int(found[2]) + 1 if found[2] else size))


def _contents(each: Listed) -> str:
    return (
        f"<Contents><Key>{quote(each.key)}</Key><LastModified>2026-03-01T10:20:30.000Z</LastModified>"
        f"<ETag>&quot;{each.etag}&quot;</ETag><Size>{each.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )
