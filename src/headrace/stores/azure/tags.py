"""Tags as Azure's XML."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from headrace.stores.errors import StoreUnavailableError


def tags_of(place: str, body: bytes) -> dict[str, str]:
    """The tags in an answer; *place* begins the ``StoreUnavailableError`` for what holds none."""
    try:
        found = ET.fromstring(body).iter("Tag")  # noqa: S314 (the server that is trusted with the data)
    except ET.ParseError as error:
        raise StoreUnavailableError(f"{place}: Get Blob Tags: no tags: {error}.") from error
    return {each.findtext("Key", ""): each.findtext("Value", "") for each in found}


def xml_of(tags: Mapping[str, str]) -> bytes:
    """The body that sets *tags*."""
    root = ET.Element("Tags")
    tag_set = ET.SubElement(root, "TagSet")
    for name, text in tags.items():
        tag = ET.SubElement(tag_set, "Tag")
        ET.SubElement(tag, "Key").text = name
        ET.SubElement(tag, "Value").text = text
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)
