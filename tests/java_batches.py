"""Batches and messages that Kafka's own Java classes have written: all formats, all compressions, both kinds of time.

``java_batches.json`` is the output of ``MemoryRecords.builder`` of Kafka 4.3.1 (base offset 70, append time 1600000099999)
by format, compression and timestamp type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from record_batches import Row

JAVA: Final[dict[str, bytes]] = {
    name: bytes.fromhex(text)
    for name, text in json.loads(
        (Path(__file__).parent / "kafka" / "batches" / "java_batches.json").read_text("utf-8")
    ).items()
}
_APPENDED: Final = 1_600_000_099_999
_LONG: Final = b"value value value value value value"


def java_rows(name: str) -> list[Row]:
    """The three records of ``JAVA[name]``, with the times that this format and kind of time has for them."""
    records = [
        (1_600_000_000_000, b"key", _LONG),
        (1_600_000_000_005, None, b""),
        (1_600_000_000_001, b"", None),
    ]
    times = {"NoTimestampType": (-1, -1), "CreateTime": (None, 0), "LogAppendTime": (_APPENDED, 1)}
    time, kind = times[name.split()[2]]
    return [
        Row(70 + index, own if time is None else time, key, value, [], kind)
        for index, (own, key, value) in enumerate(records)
    ]
