"""How a person has one file read again. Pure."""

from __future__ import annotations

from typing import Final

from headrace.connect.partition import RECORD_COUNT, SourceOffset
from headrace.connect.reread_commands import set_command
from headrace.connectors.files.progress import whole

FROM_BEGINNING: Final[SourceOffset] = {RECORD_COUNT: 0}
"""Works below a mark, too, and removes the ranges that a file was split into; no offset at all does not."""


def file_again(path: str) -> str:
    """What has the file or object at *path* read again; to go on behind "or"."""
    command = set_command(whole(path), FROM_BEGINNING)
    return f"stop the connector, have the file read from its beginning ({command}) and resume it"
