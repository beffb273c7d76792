"""A stream that remembers what was read of it, so that offsets can prove it later."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from io import FileIO
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headrace.connectors.files.prefix_fingerprint import (
    CHECKED,
    CHECKSUM,
    DIGEST,
    EDGE_BYTES,
    PrefixFingerprint,
    fingerprint_from,
)
from headrace.formats.rows import Int64Array
from headrace.formats.streams import ByteStream, Compression, open_stream, skipped
from headrace.kafka.batches.checksums import crc32c

# Each fingerprint costs some microseconds, so of many rows only some have one; rows between two of them carry the one before.
_MOST_FINGERPRINTED = 64
_FINGERPRINTS_OF_MANY = 4
_LEAST_KEPT_BYTES = 2 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


class _Kept:
    """The newest bytes of a stream, in memory that is reused: allocating it for each block took as long as reading the block.

    *base* is the byte of the stream with which they begin.
    """

    def __init__(self, base: int, content: bytes) -> None:
        self.base = base
        self._memory = memoryview(bytearray(content))
        self._begin, self._end = 0, len(content)

    def __len__(self) -> int:
        return self._end - self._begin

    def append(self, content: memoryview) -> None:
        """What comes next in the stream; it is copied."""
        count, used = len(content), len(self)
        # Moved only if few bytes have to be, so that each byte is moved seldom however many are kept.
        if self._begin >= used or self._end + count > len(self._memory):
            size = used + count
            memory = self._memory
            if size > len(memory):
                memory = memoryview(bytearray(size + size // 8))
            memory[:used] = self._memory[self._begin : self._end]
            self._memory, self._begin, self._end = memory, 0, used
        self._memory[self._end : self._end + count] = content
        self._end += count

    def between(self, start: int, stop: int) -> memoryview:
        """The bytes of the stream from *start* to before *stop*, until the next call of :meth:`append`."""
        shift = self._begin - self.base
        return self._memory[start + shift : stop + shift]

    def forget(self, count: int) -> None:
        """The first *count* of them are not needed any more."""
        self._begin += count
        self.base += count


class FingerprintingStream:
    """The bytes of *stream*, which begins at *position*; *head* and *tail* are the edges of what precedes it.

    It remembers what was read since the last call of :meth:`columns`, up to *keep* bytes. *digest* is the checksum
    of all that precedes it; with ``None`` its fingerprints have none. Used by one thread.
    """

    def __init__(
        self,
        stream: ByteStream,
        *,
        position: int = 0,
        head: bytes = b"",
        tail: bytes = b"",
        keep: int = _LEAST_KEPT_BYTES,
        digest: int | None = None,
    ) -> None:
        self._stream = stream
        self._head = head
        self._kept = _Kept(position - len(tail), tail)
        self._keep = keep
        self._digest, self._digested = digest, position
        self._last = fingerprint_from(position, head=head, tail=tail, digest=digest)

    @property
    def position(self) -> int:
        """The byte up to which the stream was read."""
        return self._kept.base + len(self._kept)

    def read_into(self, target: memoryview) -> int:
        """See :class:`~headrace.formats.streams.ByteStream`."""
        count = self._stream.read_into(target)
        if len(self._head) < EDGE_BYTES:
            self._head += bytes(target[: min(count, EDGE_BYTES - len(self._head))])
        self._kept.append(target[:count])
        # Only where rows are skipped or blank for long: memory must not depend on how long.
        if len(self._kept) > self._keep:
            self._forget(self.position - self._keep // 2)
        return count

    def close(self) -> None:
        """See :class:`~headrace.formats.streams.ByteStream`."""
        self._stream.close()

    def skip_to(self, position: int) -> bool:
        """Read on to *position*; ``False`` when the object ends before it."""
        count = position - self.position
        return skipped(self, count) == count

    def fingerprint_at(self, position: int) -> PrefixFingerprint:
        """The fingerprint for *position*, or the last one before it when its bytes are not remembered."""
        start = max(position - EDGE_BYTES, 0)
        if start >= self._kept.base:
            tail = bytes(self._kept.between(start, position))
            digest = self._digest_at(position)
            self._last = fingerprint_from(
                position, head=self._head[:position], tail=tail, digest=digest
            )
        return self._last

    def columns(self, anchors: Int64Array) -> dict[str, pa.Array]:
        """The fields of fingerprints in the offsets of rows that end at *anchors*; forgets what precedes the last.

        The first and the last row have their own fingerprint, and of many rows a few between them.
        """
        count = len(anchors)
        step = 1 if count <= _MOST_FINGERPRINTED else -(-count // _FINGERPRINTS_OF_MANY)
        chosen = sorted({*range(0, count, step), count - 1})
        fingerprints = [self.fingerprint_at(int(anchors[row])) for row in chosen]
        rows = [after - row for row, after in pairwise((*chosen, count))]
        self._forget(int(anchors[-1]) - EDGE_BYTES)
        columns = {
            CHECKED: [each.checked for each in fingerprints],
            CHECKSUM: [each.checksum for each in fingerprints],
        }
        digests = [each.digest for each in fingerprints if each.digest is not None]
        if len(digests) == len(fingerprints):
            columns[DIGEST] = digests
        return {
            key: pa.array(np.repeat(np.array(each, np.int64), rows))
            for key, each in columns.items()
        }

    def _digest_at(self, position: int) -> int | None:
        """The checksum of all before *position*, which does not lie before the last one that was asked for."""
        if self._digest is None or position < self._digested:
            return None
        passed = self._kept.between(self._digested, position)
        self._digest, self._digested = crc32c(passed, self._digest), position
        return self._digest

    def _forget(self, before: int) -> None:
        excess = before - self._kept.base
        if excess > 0:
            if self._digested < before:
                self._digest_at(before)
            self._kept.forget(excess)


def open_fingerprinting_stream(
    raw: FileIO,
    packing: Compression,
    position: int,
    *,
    fingerprint: PrefixFingerprint | None,
    keep: int,
    digests: bool = False,
) -> FingerprintingStream | None:
    """The bytes of *raw* from *position* of the unpacked text on, or ``None`` when *fingerprint* does not hold.

    With *digests* its fingerprints tell all bytes of a text that is not packed, where *fingerprint* does or there are none yet.
    Owns *raw* when it returns a stream. Raises :class:`~headrace.connect.errors.RecordError` where packed
    bytes before *position* are damaged, and ``OSError``.
    """
    if packing is Compression.NONE:
        if fingerprint is not None and not holds(raw, packing, [fingerprint]):
            return None
        head, tail = _edges(raw, position)
        digest = _digest_before(raw, position, fingerprint) if digests else None
        stream = open_stream(raw, packing, position)
        return FingerprintingStream(
            stream, position=position, head=head, tail=tail, keep=keep, digest=digest
        )
    fingerprinting = FingerprintingStream(open_stream(raw, packing, 0), keep=keep)
    if fingerprint is not None and not _reaches(fingerprinting, fingerprint):
        return None
    return fingerprinting if fingerprinting.skip_to(position) else None


def holds(raw: FileIO, packing: Compression, fingerprints: Iterable[PrefixFingerprint]) -> bool:
    """Whether the file *raw* still begins with what all of *fingerprints* speak of.

    Reads two kibibytes for each, or unpacks to the last of them. Raises
    :class:`~headrace.connect.errors.RecordError` where packed bytes before that are damaged, and ``OSError``.
    """
    if packing is Compression.NONE:
        return all(_plain_fingerprint(raw, each.checked) == each for each in fingerprints)
    fingerprinting = FingerprintingStream(open_stream(raw, packing, 0))
    return all(_reaches(fingerprinting, each) for each in sorted(fingerprints))


class WholeDigest:
    """The checksum of all bytes of a file before :attr:`position`, from its first one on, read a part at a time.

    It is a CRC-32C, but of one that is *packed* a part of the SHA-256. That may hold checksums of its own, and the CRC of what ends with
    its own CRC is the same whatever comes before.
    """

    def __init__(self, *, packed: bool) -> None:
        self._sha = hashlib.sha256() if packed else None
        self._crc = 0
        self.position = 0
        """The byte up to which it was read."""

    def read(self, raw: FileIO, stop: int) -> None:
        """Go on to byte *stop* of *raw*, or to its end where that comes first.

        Leaves the place of *raw* as it is. Raises ``OSError``.
        """
        while self.position < stop:
            count = min(_PIECE_BYTES, stop - self.position)
            piece = os.pread(raw.fileno(), count, self.position)
            if not piece:
                return
            if self._sha is None:
                self._crc = crc32c(piece, self._crc)
            else:
                self._sha.update(piece)
            self.position += len(piece)

    @property
    def value(self) -> int:
        """The checksum; 63 bits at most, so that it is a positive number in a column of 64 bits."""
        if self._sha is None:
            return self._crc
        return int.from_bytes(self._sha.digest()[:8], "big") >> 1


def _digest_between(raw: FileIO, start: int, stop: int, digest: int) -> int | None:
    """The checksum of all bytes before *stop*, of which *digest* is that of those before *start*.

    ``None`` when there are fewer. Leaves the place of *raw* as it is. Raises ``OSError``.
    """
    while start < stop:
        piece = os.pread(raw.fileno(), min(_PIECE_BYTES, stop - start), start)
        if not piece:
            return None
        digest, start = crc32c(piece, digest), start + len(piece)
    return digest


def _digest_before(raw: FileIO, position: int, fingerprint: PrefixFingerprint | None) -> int | None:
    if fingerprint is None:
        return None if position else 0
    if fingerprint.digest is None or fingerprint.checked > position:
        return None
    return _digest_between(raw, fingerprint.checked, position, fingerprint.digest)


def _reaches(fingerprinting: FingerprintingStream, fingerprint: PrefixFingerprint) -> bool:
    return (
        fingerprinting.skip_to(fingerprint.checked)
        and fingerprinting.fingerprint_at(fingerprint.checked) == fingerprint
    )


def _plain_fingerprint(raw: FileIO, position: int) -> PrefixFingerprint:
    head, tail = _edges(raw, position)
    return fingerprint_from(position, head=head, tail=tail)


def _edges(raw: FileIO, position: int) -> tuple[bytes, bytes]:
    """The first and the last bytes before *position*."""
    count = min(position, EDGE_BYTES)
    descriptor = raw.fileno()
    return os.pread(descriptor, count, 0), os.pread(descriptor, count, position - count)
