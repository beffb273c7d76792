"""A small Google Cloud Storage, as far as its JSON interface is used here."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, unquote

from connectors.stores.fake_objects import FakeStore, Kept, ranged
from connectors.stores.s3_proxy import Answer
from headrace.stores.checksum import Checksum


class FakeGoogle(FakeStore):
    """A server of the bucket *bucket*."""

    def __init__(self, bucket: str) -> None:
        super().__init__()
        self.bucket = bucket

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The server's answer."""
        path, _, text = target.partition("?")
        query = dict(parse_qsl(text, keep_blank_values=True))
        _, _, _, _, bucket, _, *rest = map(unquote, path.split("/"))
        if bucket != self.bucket:
            return _error(404, "The specified bucket does not exist.", "notFound")
        if not rest:
            return self._listing(query)
        self.interrupt(method)
        return self._of_object(method, rest, query, headers)

    def _of_object(
        self, method: str, rest: list[str], query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        key, kept = rest[0], self.kept.get(rest[0])
        wanted = query.get("ifGenerationMatch") or query.get("ifSourceGenerationMatch")
        if wanted and (kept is None or kept.version != wanted):
            # Also for what is not there.
            return _error(
                412, "At least one of the pre-conditions did not hold.", "conditionNotMet"
            )
        if kept is None:
            return _error(404, f"No such object: {self.bucket}/{key}", "notFound")
        if method == "DELETE":
            del self.kept[key]
            return Answer(204, {}, b"")
        if method == "POST":
            copied = self.put(rest[-1], kept.data)
            return _json({"done": True, "resource": _metadata(rest[-1], copied)})
        if query.get("alt") == "media":
            return ranged(kept.data, headers.get("Range"), _media(kept))
        return _json(_metadata(key, kept))

    def _listing(self, query: Mapping[str, str]) -> Answer:
        keys, token = self.page(
            query.get("prefix", ""),
            query.get("startOffset", ""),
            query.get("pageToken", ""),
            int(query["maxResults"]),
        )
        items = [_metadata(key, self.kept[key]) for key in keys]
        more = {"nextPageToken": token} if token else {}
        return _json({"kind": "storage#objects", "items": items, **more})


def _metadata(key: str, kept: Kept) -> dict[str, str]:
    return {
        "name": key,
        "size": f"{len(kept.data)}",
        "generation": kept.version,
        "timeCreated": datetime.fromtimestamp(kept.modified, UTC).isoformat(),
        "storageClass": "STANDARD",
    }


def _media(kept: Kept) -> dict[str, str]:
    crc = Checksum("crc32c", b"")
    crc.update(kept.data)
    md5 = base64.b64encode(hashlib.md5(kept.data).digest()).decode()
    return {"X-Goog-Generation": kept.version, "X-Goog-Hash": f"crc32c={crc.found},md5={md5}"}


def _json(found: object, status: int = 200) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, json.dumps(found).encode())


def _error(status: int, message: str, reason: str) -> Answer:
    error = {"code": status, "message": message, "errors": [{"reason": reason}]}
    return _json({"error": error}, status)
