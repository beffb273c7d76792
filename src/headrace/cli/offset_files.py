"""Files of offsets: our own exports, and the offsets file of a Java worker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import click

from headrace.cli.offset_answers import Entry, Offsets, Values
from headrace.connect.errors import ConnectError
from headrace.connect.partition import SourcePartition
from headrace.runtime.herder.answers import ConnectorOffset
from headrace.runtime.offset_changes.document import DocumentError, exported, imported
from headrace.storage.java_offsets_file import OffsetsFileError, java_offsets

STANDARD: Final = Path("-")
"""Stands for the standard input or output."""

_JAVA: Final = b"\xac\xed"


class OffsetFileError(ConnectError):
    """The file cannot be read or written, or holds no offsets; the message names it."""


def read_offsets(path: Path, connector: str) -> Offsets:
    """The offsets in the file at *path*; of a Java worker's file, which has many connectors', *connector*'s.

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
        told = "It is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise OffsetFileError(f"{path}: {str(told).rstrip('.')}.") from error


def write_offsets(path: Path, offsets: Offsets) -> None:
    """Export *offsets* to *path*, which must not be there yet. Raises :class:`OffsetFileError`."""
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
            f"{path} is there already. Name another file, or remove it."
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
            f"It has no offsets of connector {connector}. Say with --of whose you mean; it has those of: "
            f"{names}"
        )
    return [Entry(dict(partition), dict(offset)) for partition, offset in found[connector].items()]
