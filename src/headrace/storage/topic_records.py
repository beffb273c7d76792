"""What keys and values of Kafka Connect's internal topics have in common. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias, cast

Content: TypeAlias = Mapping[str, object]
"""The JSON object of a value."""


class UnreadableRecordError(ValueError):
    """A record that Kafka Connect does not write. It changes nothing, and the message says what is wrong with it."""


def key_text(key: bytes | None) -> str:
    """The text of a record's key."""
    if key is None:
        raise UnreadableRecordError("it has no key")
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise UnreadableRecordError(f"its key is not UTF-8: {error}") from error


def task_of(name: str) -> tuple[str, int]:
    """The connector and the number of the task *name*, such as ``my-connector-0``; names of connectors may have hyphens."""
    connector, hyphen, index = name.rpartition("-")
    if not (hyphen and index.isascii() and index.isdecimal()):
        raise UnreadableRecordError(f"its key does not end with the number of a task: {name!r}")
    return connector, int(index)


def number_of(content: Content, name: str) -> int:
    """The number called *name* in a value."""
    found = content.get(name)
    if not isinstance(found, int):
        raise UnreadableRecordError(f"its {name} is no number")
    return found


def parsed(value: bytes | None) -> Content | None:
    """The object in a record's value; ``None`` for a tombstone."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecordError(f"its value is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableRecordError("its value is no JSON object")
    return cast("Content", found)
