"""Whether files on disk still begin with what was sent of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from io import FileIO

from headrace.connect.errors import RecordError
from headrace.connectors.files.file_opener import HEAD_BYTES
from headrace.connectors.files.local.file_seen import GONE, FileSeen, seen, touched_ns, unreadable
from headrace.connectors.files.local.fingerprinting_stream import WholeDigest, holds
from headrace.connectors.files.local.path_cache import PathCache
from headrace.connectors.files.prefix_fingerprint import PrefixFingerprint
from headrace.formats.streams import Compression

_Asked = tuple[int, int, int, frozenset[PrefixFingerprint]]
_AskedCopy = tuple[int, int, int, int]
# Some seconds: meanwhile the driver neither plans nor stops.
_MOST_COMPARED = 1024**3


class PrefixCheck:
    """Looks into files at each plan; a packed one is unpacked only once while it does not change."""

    def __init__(self) -> None:
        self._answers = PathCache[tuple[_Asked, bool]]()
        self._copies = PathCache[tuple[_AskedCopy, bool]]()
        self._begun = PathCache[tuple[_AskedCopy, WholeDigest]]()
        self.begin()

    def begin(self) -> None:
        """A round begins, which reads at most 1 GiB of what may be copies."""
        self._left = _MOST_COMPARED
        self.is_exhausted = False
        """Whether files are left that may be copies, and were not read to their end in this round."""

    def keep(self, shown: Sequence[str]) -> None:
        """Forget all files that a listing has not *shown*."""
        self._answers.keep(shown)
        self._copies.keep(shown)
        self._begun.keep(shown)

    def holds(
        self, file: FileSeen, packing: Compression, fingerprints: Collection[PrefixFingerprint]
    ) -> bool:
        """Whether *fingerprints* hold for *file*, and so for one that is gone again.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
        """
        if not fingerprints:
            return True
        if packing is Compression.NONE:
            return _holds(file.path, packing, fingerprints)
        asked = (file.size, file.inode, file.touched_ns, frozenset(fingerprints))
        known = self._answers.get(file.path)
        if known is None or known[0] != asked:
            known = asked, _holds(file.path, packing, fingerprints)
            self._answers[file.path] = known
        return known[1]

    def is_copy(self, file: FileSeen, digest: int, *, packed: bool) -> bool | None:
        """Whether *digest* is that of all bytes of *file*; ``None``: not known yet, ask in the next round.

        It is read once while it does not change: as much as is left of the round, and more in the next ones. Nor is it
        known of a file that was touched, or has vanished, since *file* was seen. Raises
        :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
        """
        asked = (file.size, file.inode, file.touched_ns, digest)
        known = self._copies.get(file.path)
        if known is not None and known[0] == asked:
            return known[1]
        if not self._left:
            self.is_exhausted = True
            return None
        begun = self._begun.pop(file.path, None)
        if begun is None or begun[0] != asked:
            begun = asked, WholeDigest(packed=packed)
        whole = begun[1]
        stop = min(file.size, whole.position + self._left)
        if not self._reads_to(stop, file, whole):
            return None
        if whole.position == stop < file.size:
            self._begun[file.path] = begun
            self.is_exhausted = True
            return None
        found = whole.position == file.size and whole.value == digest
        self._copies[file.path] = asked, found
        return found

    def _reads_to(self, stop: int, file: FileSeen, whole: WholeDigest) -> bool:
        """Whether *file* is still as it was seen when *whole* has read it to *stop*, or to its end before that."""
        begin = whole.position
        try:
            with FileIO(file.path) as raw:
                whole.read(raw, stop)
                status = os.fstat(raw.fileno())
        except GONE:
            return False
        except OSError as error:
            raise unreadable("file", file.path, error) from error
        self._left -= whole.position - begin
        return _signs(status) == (file.size, file.inode, file.touched_ns)


def packed_digest(path: str, *, version: str, size: int, modified_ms: int) -> int | None:
    """The checksum of all *size* bytes of the packed file that has *version*; ``None`` when that is not at *path* any more.

    Nor is it where it was modified after *modified_ms*, or is touched meanwhile. Raises ``OSError``.
    """
    try:
        with FileIO(path) as raw:
            file = seen(path, os.fstat(raw.fileno()), os.pread(raw.fileno(), HEAD_BYTES, 0))
            if file.size != size or file.modified_ms != modified_ms or not file.is_still(version):
                return None
            digest = WholeDigest(packed=True)
            digest.read(raw, size)
            same = _signs(os.fstat(raw.fileno())) == (size, file.inode, file.touched_ns)
            return digest.value if same and digest.position == size else None
    except GONE:
        return None


def _signs(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_ino, touched_ns(status)


def _holds(path: str, packing: Compression, fingerprints: Collection[PrefixFingerprint]) -> bool:
    try:
        with FileIO(path) as raw:
            return holds(raw, packing, fingerprints)
    except GONE:
        return True
    except RecordError:
        # Damaged before the place up to which it was read without a complaint.
        return False
    except OSError as error:
        raise unreadable("file", path, error) from error
