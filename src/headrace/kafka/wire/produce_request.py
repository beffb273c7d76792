"""Produce requests around record batches that are not copied, and the answers to them; versions 3 to 12.

kafka-python's classes would copy every batch, and cost more than the broker's round trip where batches are small; tests compare
the bytes and the fields with theirs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.kafka.batches.checksums import Bytes
from headrace.kafka.wire.fields import INT16, INT32, INT64, FieldReader

VERSIONS: Final = (3, 11)
"""Version 3 has the format of record batches with transactions (Kafka 0.11)."""
JOINING_VERSIONS: Final = (12, 12)
"""With version 12, partitions join a transaction by themselves (KIP-890). Later ones name topics by ids."""

_FLEXIBLE: Final = 9
_ALL: Final = -1
# A piece that is shorter is copied: the system takes a bounded number of pieces at a time.
_COPIED_BYTES: Final = 4096
_NO_TAGS: Final = b"\0"
_RESULT: Final = struct.Struct(">ihqq")
_LONGER_RESULT: Final = struct.Struct(">ihqqq")
# No errors of records, no message, no tagged fields.
_NOTHING_ELSE: Final = b"\1\0\0"

PartitionBatch = tuple[int, Sequence[Bytes]]
"""A partition's number, and the pieces of the one batch for it."""


class RefusedRecord(NamedTuple):
    """A record because of which its batch was refused: its place in the batch, and the broker's words."""

    row: int
    message: str


class ProduceResult(NamedTuple):
    """What became of the batch for one partition; *base_offset* is -1 where the broker does not say.

    *append_time* is the records' time in milliseconds where the broker sets it, -1 where the producer does.
    """

    topic: str
    partition: int
    error_code: int
    base_offset: int
    append_time: int
    message: str
    refused: Sequence[RefusedRecord]


class ProduceAnswer(NamedTuple):
    """A whole answer."""

    throttle_ms: int
    results: list[ProduceResult]


def produce_body(
    batches: Mapping[str, Iterable[PartitionBatch]],
    *,
    version: int,
    transactional_id: str | None,
    timeout_ms: int,
) -> list[Bytes]:
    """The pieces of a request, without its header, for one batch of each partition, which is acknowledged by all replicas."""
    form = _Flexible() if version >= _FLEXIBLE else _Fixed()
    out = _Pieces()
    out.small += form.text(transactional_id)
    out.small += struct.pack(">hi", _ALL, timeout_ms)
    out.small += form.count(len(batches))
    for topic, partitions in batches.items():
        listed = list(partitions)
        out.small += form.text(topic)
        out.small += form.count(len(listed))
        for partition, pieces in listed:
            out.small += INT32.pack(partition)
            out.small += form.length(sum(map(len, pieces)))
            for piece in pieces:
                out.add(piece)
            out.small += form.end
        out.small += form.end
    out.small += form.end
    return out.all()


def produce_answer(body: memoryview, version: int) -> ProduceAnswer:
    """The answer in *body*; raises ``ConnectionError`` for bytes that are none."""
    try:
        return _Reader(body, version).answer()
    except (ValueError, IndexError, struct.error) as error:
        raise ConnectionError(f"the broker's answer to Produce cannot be read ({error})") from error


class _Pieces:
    """Pieces of a request; small ones are gathered."""

    def __init__(self) -> None:
        self.small = bytearray()
        self._found: list[Bytes] = []

    def add(self, piece: Bytes) -> None:
        if len(piece) < _COPIED_BYTES:
            self.small += piece
            return
        if self.small:
            self._found.append(self.small)
            self.small = bytearray()
        self._found.append(piece)

    def all(self) -> list[Bytes]:
        return [*self._found, self.small] if self.small else self._found


class _Fixed:
    """Lengths and texts before flexible versions."""

    end = b""

    def text(self, text: str | None) -> bytes:
        if text is None:
            return INT16.pack(-1)
        encoded = text.encode()
        return INT16.pack(len(encoded)) + encoded

    def count(self, count: int) -> bytes:
        return INT32.pack(count)

    length = count


class _Flexible:
    """Lengths and texts since flexible versions (KIP-482): one more than it is, 0 for ``null``."""

    end = _NO_TAGS

    def text(self, text: str | None) -> bytes:
        if text is None:
            return b"\0"
        encoded = text.encode()
        return self.count(len(encoded)) + encoded

    def count(self, count: int) -> bytes:
        left = count + 1
        found = bytearray()
        while left > 0x7F:  # noqa: PLR2004 (seven bits in each byte)
            found.append(left & 0x7F | 0x80)
            left >>= 7
        found.append(left)
        return bytes(found)

    length = count


class _Reader:
    """Reads the results of an answer one after the other."""

    def __init__(self, body: memoryview, version: int) -> None:
        self._version = version
        self._is_flexible = version >= _FLEXIBLE
        self._fields = FieldReader(body, is_flexible=self._is_flexible)

    def answer(self) -> ProduceAnswer:
        fields = self._fields
        topics = fields.array(self._topic)
        throttle_ms = fields.number(INT32)
        fields.skip_tags()
        return ProduceAnswer(throttle_ms, [each for topic in topics for each in topic])

    def _topic(self) -> list[ProduceResult]:
        topic = self._fields.text()
        found = self._fields.array(lambda: self._result(topic))
        self._fields.skip_tags()
        return found

    def _result(self, topic: str) -> ProduceResult:
        fields = self._fields
        if self._is_flexible:
            partition, error_code, base_offset, append_time, _ = _LONGER_RESULT.unpack_from(
                fields.body, fields.at
            )
            fields.skip(_LONGER_RESULT.size)
            end = fields.at + len(_NOTHING_ELSE)
            if bytes(fields.body[fields.at : end]) == _NOTHING_ELSE:
                fields.at = end
                return ProduceResult(topic, partition, error_code, base_offset, append_time, "", ())
        else:
            partition, error_code, base_offset, append_time = _RESULT.unpack_from(
                fields.body, fields.at
            )
            fields.skip(_RESULT.size)
            if self._version >= 5:  # noqa: PLR2004 (the log's start)
                fields.skip(INT64.size)
        refused, message = list[RefusedRecord](), ""
        if self._version >= 8:  # noqa: PLR2004 (KIP-467)
            refused = fields.array(self._refused)
            message = fields.text()
        fields.skip_tags()
        return ProduceResult(
            topic, partition, error_code, base_offset, append_time, message, refused
        )

    def _refused(self) -> RefusedRecord:
        found = RefusedRecord(self._fields.number(INT32), self._fields.text())
        self._fields.skip_tags()
        return found
