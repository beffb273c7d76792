"""What people type to have something read again. Pure; in words that a shell takes as they are."""

from __future__ import annotations

import json
import shlex
from typing import Final

from headrace.connect.partition import SourceOffset, SourcePartition

RESET_COMMAND: Final = "headrace offsets reset CONNECTOR"
"""Forgets all offsets."""

ALL_ANEW: Final = (
    f"stop the connector, forget its offsets ({RESET_COMMAND}) and resume it; or give it another name. It reads "
    "everything from the beginning then"
)
"""What has everything read again, whatever the source is; to go on behind "or", without a full stop."""


def set_command(partition: SourcePartition, offset: SourceOffset | None) -> str:
    """Gives *partition* that offset; ``None`` forgets it."""
    wanted = "null" if offset is None else shlex.quote(_json(offset))
    return f"headrace offsets set CONNECTOR {shlex.quote(_json(partition))} {wanted}"


def _json(values: SourcePartition | SourceOffset) -> str:
    return json.dumps(dict(values), ensure_ascii=False, separators=(",", ":"))
