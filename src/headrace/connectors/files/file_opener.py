"""The seam between the reading of splits and the places where files lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from headrace.connect.errors import ConnectError
from headrace.connectors.files.details import SplitDetails
from headrace.formats.readable import Readable

HEAD_BYTES: Final = 1024
"""How many of a file's first bytes are looked at: they belong to the identity of one on disk, and tell how it is packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A file or an object, open at its beginning; *head* are its first bytes, where they were asked for."""

    raw: Readable
    head: bytes = b""


class FileOpener(Protocol):
    """Opens what was planned. Used by one task, on its thread."""

    def open(self, path: str, planned: SplitDetails, *, with_head: bool) -> Opened | None:
        """What is at *path*; ``None`` when it is not there any more or not what was *planned*.

        Raises :class:`~headrace.connect.errors.TaskFailedError`, and ``OSError``. A store says only when it
        is asked that an object is gone or changed: here for the head, else at the first reading.
        """
        ...

    def is_as_planned(self, path: str, planned: SplitDetails, *, grown: bool) -> bool:
        """After it was read: whether it is still what was *planned*, or has at most *grown*."""
        ...

    def digest(self, path: str, planned: SplitDetails) -> int | None:
        """The checksum of all bytes of what is *planned*, whose fingerprints do not tell them: it is packed, or read as a whole.

        ``None`` where nothing is to be known by it. Reads them.

        Raises ``OSError``.
        """
        ...

    def failure(self, path: str, error: OSError) -> ConnectError:
        """What to raise for *error*, which reading has met: what fails the task, or what passes."""
        ...
