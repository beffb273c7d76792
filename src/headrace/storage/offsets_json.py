"""Source offsets as JSON text, for histories of their changes. Pure."""

from __future__ import annotations

import json

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets


def offsets_text(offsets: Offsets) -> str:
    """*offsets*, whose values have the types that the offset codec returns, as JSON."""
    pairs = [
        [dict(partition), None if offset is None else dict(offset)]
        for partition, offset in offsets.items()
    ]
    return json.dumps(pairs, separators=(",", ":"))


def offsets_of_text(text: str) -> Offsets:
    """What :func:`offsets_text` was given."""
    return {SourcePartition(partition): offset for partition, offset in json.loads(text)}
