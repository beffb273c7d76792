"""Pages of S3's listings: their objects, read in a tenth of the time that botocore takes."""

from __future__ import annotations

import re
from datetime import datetime
from http import HTTPStatus
from typing import Any
from xml.parsers import expat

# Printable ASCII that needs no escape in XML.
_TEXT = r"[ -%'-;=-~]*"
# As Amazon and most others write an object. One expression reads a page in a quarter of the parser's time.
_USUAL = re.compile(
    f"<Contents><Key>({_TEXT})</Key><LastModified>({_TEXT})</LastModified>"
    f"<ETag>((?:&quot;)?{_TEXT}(?:&quot;)?)</ETag>"
    f"(?:<ChecksumAlgorithm>{_TEXT}</ChecksumAlgorithm>)*"
    f"(?:<ChecksumType>{_TEXT}</ChecksumType>)?"
    f"<Size>([0-9]+)</Size><StorageClass>({_TEXT})</StorageClass></Contents>"
)


def read_objects(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Take the objects out of an answer to ListObjectsV2, and leave the rest of it to botocore.

    botocore calls it before it parses an answer, and adds what is in *customized_response_dict* to what it
    then finds: objects have the form that they have from it. What does not look as expected is all left
    to botocore, and to its errors.
    """
    if response_dict["status_code"] != HTTPStatus.OK:
        return
    body = response_dict["body"]
    try:
        found = _usual_objects(body) or _objects(body)
    except (expat.ExpatError, ValueError, KeyError):
        return
    if found:
        response_dict["body"] = _without_objects(body)
        customized_response_dict["Contents"] = found


def _without_objects(body: bytes) -> bytes:
    """What is left for botocore: *body*, which is well-formed, without its objects."""
    # A regular expression would take half as long as the parser did.
    before, *parts = body.split(b"<Contents>")
    return before + b"".join(each.partition(b"</Contents>")[2] for each in parts)


def _usual_objects(body: bytes) -> list[dict[str, Any]]:
    """The objects in *body* where all of them are written as usual; else none, and the parser has to look."""
    # What may hide text from the expression: comments, CDATA, entities; and a body that was cut.
    if not body.isascii() or b"<!" in body or not body.rstrip().endswith(b"</ListBucketResult>"):
        return []
    found = _USUAL.findall(body.decode("ascii"))
    if len(found) != body.count(b"<Contents"):
        return []
    return [
        _object(
            key, modified=modified, etag=etag.replace("&quot;", '"'), size=size, storage=storage
        )
        for key, modified, etag, size, storage in found
    ]


def _objects(body: bytes) -> list[dict[str, Any]]:
    """The objects in *body*. Without a tree: its nodes would keep the garbage collector busy."""
    found = list[dict[str, Any]]()
    members = dict[str, str]()
    texts = list[str]()

    def end(name: str) -> None:
        if name == "Contents":
            found.append(_of_members(members))
            members.clear()
        else:
            members[name] = "".join(texts)
        texts.clear()

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.CharacterDataHandler = texts.append
    parser.EndElementHandler = end
    parser.Parse(body, True)  # noqa: FBT003 (it is all there is)
    return found if "ListBucketResult" in members else []


def _of_members(members: dict[str, str]) -> dict[str, Any]:
    return _object(
        members["Key"],
        modified=members["LastModified"],
        etag=members["ETag"],
        size=members["Size"],
        storage=members.get("StorageClass"),
    )


def _object(
    key: str, *, modified: str, etag: str, size: str, storage: str | None
) -> dict[str, Any]:
    moment = datetime.fromisoformat(modified)
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return {
        "Key": key,
        "ETag": etag,
        "Size": int(size),
        "LastModified": moment,
        "StorageClass": storage,
    }
