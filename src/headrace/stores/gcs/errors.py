"""What Google Cloud Storage says is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from headrace.stores.rest.errors import PASSING, Meanings, Refusal

# Words of our own: Google tells a missing bucket from a missing object by its sentence alone.
_NO_BUCKET = "noSuchBucket"
_NO_OBJECT = "noSuchObject"

MEANINGS = Meanings(
    passing=PASSING | {"rateLimitExceeded", "userRateLimitExceeded", "backendError"},
    changed=frozenset({"412"}),
    gone=frozenset({_NO_OBJECT}),
    forbidden=(
        "Check the credentials, and that they have the role roles/storage.objectViewer on the bucket, or "
        "roles/storage.objectUser to copy and delete."
    ),
    advice="Check gcs.bucket and gcs.endpoint.",
)


def refusal_of(status: int, _headers: Mapping[str, str], body: bytes) -> Refusal:
    """What an answer that is not a success says; answers to reads are text, all others JSON."""
    text = body.decode(errors="replace").strip()
    code, message = str(status), text[:500]
    try:
        # Anything, also what a proxy in between may send.
        error: Any = json.loads(text)["error"]
        message = str(error["message"])
        code = str(error["errors"][0]["reason"])
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    if status == HTTPStatus.NOT_FOUND:
        code = _NO_BUCKET if "bucket does not exist" in message else _NO_OBJECT
    return Refusal(status=status, code=code, message=message)
