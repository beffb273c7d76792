"""A small Azure Blob Storage, as far as its REST interface is used here. Everybody may do everything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from email.utils import formatdate
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from connectors.stores.fake_objects import FakeStore, Kept, ranged
from connectors.stores.s3_proxy import Answer
from headrace.stores.azure.tags import tags_of, xml_of


class FakeAzure(FakeStore):
    """A server of the container *container* of any account."""

    def __init__(self, container: str) -> None:
        super().__init__()
        self.container = container

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The server's answer."""
        path, _, text = target.partition("?")
        query = dict(parse_qsl(text, keep_blank_values=True))
        _, _, container, *rest = map(unquote, path.split("/"))
        if container != self.container:
            return _error(404, "ContainerNotFound")
        if not rest:
            return self._listing(query)
        self.interrupt(method)
        asked = {name.lower(): value for name, value in headers.items()}
        if "x-ms-copy-source" in asked:
            return self._copy(rest[0], asked)
        kept = self.kept.get(rest[0])
        if kept is None:
            return _error(404, "BlobNotFound")
        if query.get("comp") == "tags":
            return self._tags(method, rest[0], kept, body)
        return self._of_blob(method, rest[0], kept, asked)

    def _of_blob(self, method: str, key: str, kept: Kept, asked: Mapping[str, str]) -> Answer:
        if asked.get("if-match", _etag(kept)) != _etag(kept):
            return _error(412, "ConditionNotMet")
        if method == "DELETE":
            del self.kept[key]
            return Answer(202, {}, b"")
        told = {
            "ETag": _etag(kept),
            "Last-Modified": formatdate(kept.modified, usegmt=True),
            "x-ms-tag-count": f"{len(kept.tags)}",
        }
        if method == "HEAD":
            return Answer(200, {**told, "Content-Length": f"{len(kept.data)}"}, b"")
        if "range" not in asked:
            told["Content-MD5"] = base64.b64encode(hashlib.md5(kept.data).digest()).decode()
        return ranged(kept.data, asked.get("range"), told)

    def _copy(self, target: str, asked: Mapping[str, str]) -> Answer:
        source = self.kept.get(unquote(urlsplit(asked["x-ms-copy-source"]).path.split("/")[-1]))
        if source is None:
            return _error(404, "CannotVerifyCopySource")
        if asked.get("x-ms-source-if-match", _etag(source)) != _etag(source):
            return _error(412, "SourceConditionNotMet")
        tags = dict(parse_qsl(asked.get("x-ms-tags", "")))
        self.kept[target] = replace(self.put(target, source.data), tags=tags)
        return Answer(202, {"x-ms-copy-status": "success", "x-ms-copy-id": "1"}, b"")

    def _tags(self, method: str, key: str, kept: Kept, body: bytes) -> Answer:
        if method == "GET":
            return Answer(200, {}, xml_of(kept.tags))
        # They are no part of the version.
        self.kept[key] = replace(kept, tags=tags_of("fake", body))
        return Answer(204, {}, b"")

    def _listing(self, query: Mapping[str, str]) -> Answer:
        keys, marker = self.page(
            query.get("prefix", ""), "", query.get("marker", ""), int(query["maxresults"])
        )
        blobs = "".join(_listed(key, self.kept[key]) for key in keys)
        text = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        return Answer(200, {}, text.encode())


def _listed(key: str, kept: Kept) -> str:
    name = f'<Name Encoded="true">{escape(quote(key, safe=""))}</Name>'
    return (
        f"<Blob>{name}<Properties><Etag>{kept.version}</Etag>"
        f"<Last-Modified>{formatdate(kept.modified, usegmt=True)}</Last-Modified>"
        f"<Content-Length>{len(kept.data)}</Content-Length></Properties></Blob>"
    )


def _etag(kept: Kept) -> str:
    return f'"{kept.version}"'


def _error(status: int, code: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    return Answer(status, {"x-ms-error-code": code}, body)
