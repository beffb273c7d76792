"""Offsets as a file that people keep and give back: JSON in the form of ``GET /connectors/c/offsets``. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast

from headrace.runtime.herder.answers import ConnectorOffset
from headrace.runtime.herder.requests import OffsetChange
from headrace.runtime.offset_changes.sentences import shown


class DocumentError(ValueError):
    """The text is no file of offsets; the message says why."""


def exported(offsets: Iterable[ConnectorOffset]) -> str:
    """A file with *offsets*, one on each line, sorted, so that two files can be compared."""
    lines = sorted(
        f'{{"partition":{shown(each.partition)},"offset":{shown(each.offset)}}}' for each in offsets
    )
    if not lines:
        return '{"offsets":[]}\n'
    joined = ",\n".join(lines)
    return f'{{"offsets":[\n{joined}\n]}}\n'


def imported(text: str) -> list[OffsetChange]:
    """The changes that a file asks for; whoever makes them judges partitions and offsets.

    Raises :class:`DocumentError`.
    """
    try:
        parsed = cast("object", json.loads(text))
    except ValueError as error:
        raise DocumentError(f"It is not JSON: {error}") from error
    match parsed:
        case {"offsets": list(elements)} if len(cast("dict[str, object]", parsed)) == 1:
            return [_change(element) for element in cast("list[object]", elements)]
        case _:
            raise DocumentError("It is not an object with one member, the array 'offsets'")


def _change(element: object) -> OffsetChange:
    match element:
        case {"partition": partition, "offset": offset}:
            return OffsetChange(partition=cast("object", partition), offset=cast("object", offset))
        case _:
            raise DocumentError(
                "An element of 'offsets' is not an object with 'partition' and 'offset'"
            )
