"""Pages of Azure's listings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

from headrace.stores.errors import KeyNotRepresentableError, StoreUnavailableError
from headrace.stores.store import StoredObject

USUAL_TIERS = frozenset({None, "", "Hot"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    """The objects of a page, and where the next one begins: empty behind the last."""

    objects: list[StoredObject]
    marker: str


def page_of(store: str, body: bytes) -> ListedPage:
    """The page in *body*.

    Raises ``StoreUnavailableError`` for what is no page, ``KeyNotRepresentableError`` for a name that is no text.
    """
    try:
        root = ET.fromstring(body)  # noqa: S314 (the server that is trusted with the data)
        blobs, marker = root.find("Blobs"), root.find("NextMarker")
        if blobs is None or marker is None:
            raise ValueError("it has no Blobs or no NextMarker")
        objects = list(_objects(store, blobs))
    except (ET.ParseError, ValueError) as error:
        raise StoreUnavailableError(
            f"{store}: List Blobs: The answer is no page: {error}."
        ) from error
    return ListedPage(objects=objects, marker=marker.text or "")


def milliseconds(date: str) -> int:
    """A date of HTTP in milliseconds of the epoch. Raises ``ValueError``."""
    return round(parsedate_to_datetime(date).timestamp() * 1000)


def unquoted(etag: str) -> str:
    """An ETag as a version: with quotes in headers, without in listings."""
    return etag.strip('"')


def _objects(store: str, blobs: ET.Element) -> Iterator[StoredObject]:
    for blob in blobs.iter("Blob"):
        # A folder of an account with a hierarchical namespace.
        if blob.findtext("Properties/ResourceType") == "directory":
            continue
        tier = blob.findtext("Properties/AccessTier")
        yield StoredObject(
            key=_key(store, blob),
            size=int(blob.findtext("Properties/Content-Length", "")),
            version=unquoted(blob.findtext("Properties/Etag", "")),
            modified_ms=milliseconds(blob.findtext("Properties/Last-Modified", "")),
            storage_class=None if tier in USUAL_TIERS else tier,
        )


def _key(store: str, blob: ET.Element) -> str:
    name = blob.find("Name")
    text = (name is not None and name.text) or ""
    # Names with characters that XML cannot hold come encoded.
    if name is None or name.get("Encoded") != "true":
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError as error:
        raise KeyNotRepresentableError(
            store, text, "The name is not UTF-8. Rename the object."
        ) from error
