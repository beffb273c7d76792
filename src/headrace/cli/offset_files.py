"""Files of offsets: exports, which have the form of ``GET /connectors/{name}/offsets``, and a Java worker's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import click
import msgspec

from headrace.connect.errors import ConnectError
from headrace.connect.partition import SourcePartition
from headrace.herder.answers import ConnectorOffset
from headrace.herder.requests import TOO_DEEP, OffsetChange, is_too_deep
from headrace.offsets.codec import json_text
from headrace.offsets.java_file import OffsetsFileError, java_offsets

Values = dict[str, Any]


class Entry(msgspec.Struct, frozen=True):
    """A source partition and its offset; Kafka Connect may answer without one of them."""

    partition: Values | None
    offset: Values | None


class Offsets(msgspec.Struct, frozen=True):
    """Offsets of a connector, as they are answered and exported."""

    offsets: Sequence[Entry]

    def known(self) -> Mapping[str, Entry]:
        """Complete entries by the text of their partition, sorted by it."""
        named = {
            text(each.partition): each
            for each in self.offsets
            if each.partition is not None and each.offset is not None
        }
        return dict(sorted(named.items()))


def sent(entries: Iterable[Entry | OffsetChange]) -> list[dict[str, object]]:
    """*entries* as in requests."""
    return [{"partition": each.partition, "offset": each.offset} for each in entries]


def text(values: Values | None) -> str:
    """A partition or an offset as JSON, the same for the same content; ``-`` for none."""
    if values is None:
        return "-"
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


STANDARD: Final = Path("-")
"""Stands for the standard input or output."""

_JAVA: Final = b"\xac\xed"


class OffsetFileError(ConnectError):
    """The file cannot be read or written, or holds no offsets; the message names it."""


def read_offsets(path: Path, connector: str) -> Offsets:
    """The offsets in the file at *path*; from a Java worker's file, those of *connector*.

    Raises :class:`OffsetFileError`.
    """
    try:
        content = sys.stdin.buffer.read() if path == STANDARD else path.read_bytes()
    except OSError as error:
        raise OffsetFileError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        if content.startswith(_JAVA):
            return Offsets(_of_java(content, connector))
        return Offsets(_of_export(content))
    except (OffsetsFileError, DocumentError, UnicodeDecodeError) as error:
        reason = "It is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise OffsetFileError(f"{path}: {str(reason).rstrip('.')}.") from error


def write_offsets(path: Path, offsets: Offsets) -> None:
    """Export *offsets* to *path*, which must not exist yet. Raises :class:`OffsetFileError`."""
    found = [
        ConnectorOffset(partition=SourcePartition(each.partition), offset=each.offset)
        for each in offsets.known().values()
        if each.partition is not None and each.offset is not None
    ]
    content = exported(found)
    if path == STANDARD:
        click.echo(content, nl=False)
        return
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise OffsetFileError(
            f"{path} already exists. Choose another file, or remove it."
        ) from None
    except OSError as error:
        raise OffsetFileError(f"{path} cannot be written: {error.strerror}.") from error


def _of_export(content: bytes) -> Sequence[Entry]:
    changes = imported(content.decode())
    for each in changes:
        if not isinstance(each.partition, dict) or not isinstance(each.offset, dict | None):
            raise DocumentError("A partition or an offset is not an object")
    return [
        Entry(cast("Values", each.partition), cast("Values | None", each.offset))
        for each in changes
    ]


def _of_java(content: bytes, connector: str) -> Sequence[Entry]:
    found = java_offsets(content)
    if connector not in found:
        names = ", ".join(sorted(found)) or "of no connector"
        raise OffsetsFileError(
            f"It has no offsets of connector {connector}. Choose another connector with --of; it has those of: "
            f"{names}"
        )
    return [Entry(dict(partition), dict(offset)) for partition, offset in found[connector].items()]


class DocumentError(ValueError):
    """The text is not a file of offsets, or is nested too deeply; the message says why."""


def exported(offsets: Iterable[ConnectorOffset]) -> str:
    """A file with *offsets*, one on each line, sorted, so that two files can be compared."""
    lines = sorted(
        f'{{"partition":{json_text(each.partition)},"offset":{json_text(each.offset)}}}'
        for each in offsets
    )
    if not lines:
        return '{"offsets":[]}\n'
    joined = ",\n".join(lines)
    return f'{{"offsets":[\n{joined}\n]}}\n'


def parsed_json(text: str) -> object:
    """The value in *text*, which may be nested as deeply as a request's body.

    Raises :class:`DocumentError` when it is nested deeper, and ``json.JSONDecodeError`` when it is not JSON.
    """
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise DocumentError(f"It is {TOO_DEEP}") from None
    if is_too_deep(value):
        raise DocumentError(f"It is {TOO_DEEP}")
    return value


def imported(text: str) -> list[OffsetChange]:
    """The changes that a file asks for; their partitions and offsets are not validated here.

    Raises :class:`DocumentError`.
    """
    try:
        parsed = parsed_json(text)
    except json.JSONDecodeError as error:
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
