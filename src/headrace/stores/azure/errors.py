"""What Azure Blob Storage says is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from xml.etree import ElementTree as ET

from headrace.stores.rest.errors import PASSING, Meanings, Refusal

_NO_OBJECT = "BlobNotFound"

MEANINGS = Meanings(
    passing=PASSING | {"ServerBusy", "InternalError", "OperationTimedOut"},
    changed=frozenset({"ConditionNotMet", "SourceConditionNotMet"}),
    gone=frozenset({_NO_OBJECT}),
    bad_key=frozenset({"InvalidResourceName", "InvalidUri"}),
    archived=frozenset({"BlobArchived"}),
    forbidden=(
        "Check the credentials, and that they have the role Storage Blob Data Reader, or Storage Blob "
        "Data Contributor to copy and delete, or a signature with these rights."
    ),
    advice="Check azure.account, azure.container and azure.endpoint.",
)


def refusal_of(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """What an answer that is not a success says: the code as a header, the sentence as XML."""
    code = headers.get("x-ms-error-code", str(status))
    if code == "CannotVerifyCopySource" and status == HTTPStatus.NOT_FOUND:
        code = _NO_OBJECT
    try:
        message = ET.fromstring(body).findtext("Message") or code  # noqa: S314 (as above)
    except ET.ParseError:
        message = body.decode(errors="replace").strip()[:500] or code
    # Behind the first line stand the request's id and time.
    return Refusal(status=status, code=code, message=message.partition("\n")[0])
