"""A stream that remembers what was read of it, so that offsets can prove it later."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import FileIO

import numpy as np
import pyarrow as pa

from headrace.connectors.files.proof import CHECKED, CHECKSUM, EDGE_BYTES, Proof, proof_from
from headrace.sources.extractors.rows import Int64Array
from headrace.sources.extractors.streams import ByteStream, Compression, open_stream, skipped

# Each proof costs about a microsecond. Rows between two of them carry the one before.
_PROOFS_PER_CHUNK = 64
_LEAST_KEPT_BYTES = 2 * 1024 * 1024


class Witness:
    """The bytes of *stream*, which begins at *position*; *head* and *tail* are the edges of what precedes it.

    It remembers what was read since the last call of :meth:`columns`, up to *keep* bytes. Used by one thread.
    """

    def __init__(
        self,
        stream: ByteStream,
        *,
        position: int = 0,
        head: bytes = b"",
        tail: bytes = b"",
        keep: int = _LEAST_KEPT_BYTES,
    ) -> None:
        self._stream = stream
        self._head = head
        self._kept = bytearray(tail)
        self._base = position - len(tail)
        self._keep = keep
        self._last = proof_from(position, head=head, tail=tail)

    @property
    def position(self) -> int:
        """The byte up to which the stream was read."""
        return self._base + len(self._kept)

    def read_into(self, target: memoryview) -> int:
        """See :class:`~headrace.sources.extractors.streams.ByteStream`."""
        count = self._stream.read_into(target)
        if len(self._head) < EDGE_BYTES:
            self._head += bytes(target[: min(count, EDGE_BYTES - len(self._head))])
        self._kept += target[:count]
        # Only where rows are skipped or blank for long: memory must not depend on how long.
        if len(self._kept) > self._keep:
            self._forget(self.position - self._keep // 2)
        return count

    def close(self) -> None:
        """See :class:`~headrace.sources.extractors.streams.ByteStream`."""
        self._stream.close()

    def skip_to(self, position: int) -> bool:
        """Read on to *position*; ``False`` when the object ends before it."""
        count = position - self.position
        return skipped(self, count) == count

    def proof_at(self, position: int) -> Proof:
        """The proof for *position*, or the last one before it when its bytes are not remembered."""
        start = max(position - EDGE_BYTES, 0) - self._base
        if start >= 0:
            tail = bytes(self._kept[start : position - self._base])
            self._last = proof_from(position, head=self._head[:position], tail=tail)
        return self._last

    def columns(self, anchors: Int64Array) -> dict[str, pa.Array]:
        """The fields of proofs in the offsets of rows that end at *anchors*; forgets what precedes the last.

        The first and the last row have their own proof, and many between them.
        """
        count = len(anchors)
        chosen = np.linspace(0, count - 1, min(count, _PROOFS_PER_CHUNK)).astype(np.int64)
        proofs = [self.proof_at(int(anchor)) for anchor in anchors[chosen]]
        nearest = np.searchsorted(chosen, np.arange(count), side="right") - 1
        self._forget(int(anchors[-1]) - EDGE_BYTES)
        return {
            CHECKED: pa.array(np.array([each.checked for each in proofs], np.int64)[nearest]),
            CHECKSUM: pa.array(np.array([each.checksum for each in proofs], np.int64)[nearest]),
        }

    def _forget(self, before: int) -> None:
        excess = before - self._base
        if excess > 0:
            del self._kept[:excess]
            self._base += excess


def open_witness(
    raw: FileIO, packing: Compression, position: int, *, proof: Proof | None, keep: int
) -> Witness | None:
    """The bytes of *raw* from *position* of the unpacked text on, or ``None`` when *proof* does not hold.

    Owns *raw* when it returns a stream. Raises :class:`~headrace.connect.errors.RecordError` where packed
    bytes before *position* are damaged, and ``OSError``.
    """
    if packing is Compression.NONE:
        if proof is not None and not holds(raw, packing, [proof]):
            return None
        head, tail = _edges(raw, position)
        stream = open_stream(raw, packing, position)
        return Witness(stream, position=position, head=head, tail=tail, keep=keep)
    witness = Witness(open_stream(raw, packing, 0), keep=keep)
    if proof is not None and not _reaches(witness, proof):
        return None
    return witness if witness.skip_to(position) else None


def holds(raw: FileIO, packing: Compression, proofs: Iterable[Proof]) -> bool:
    """Whether the file *raw* still begins with what all of *proofs* speak of.

    Reads two kibibytes for each, or unpacks to the last of them. Raises
    :class:`~headrace.connect.errors.RecordError` where packed bytes before that are damaged, and ``OSError``.
    """
    if packing is Compression.NONE:
        return all(_plain_proof(raw, each.checked) == each for each in proofs)
    witness = Witness(open_stream(raw, packing, 0))
    return all(_reaches(witness, each) for each in sorted(proofs))


def _reaches(witness: Witness, proof: Proof) -> bool:
    return witness.skip_to(proof.checked) and witness.proof_at(proof.checked) == proof


def _plain_proof(raw: FileIO, position: int) -> Proof:
    head, tail = _edges(raw, position)
    return proof_from(position, head=head, tail=tail)


def _edges(raw: FileIO, position: int) -> tuple[bytes, bytes]:
    """The first and the last bytes before *position*."""
    count = min(position, EDGE_BYTES)
    descriptor = raw.fileno()
    return os.pread(descriptor, count, 0), os.pread(descriptor, count, position - count)
