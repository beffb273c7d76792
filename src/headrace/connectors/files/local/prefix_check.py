"""Whether files on disk still begin with what was sent of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from io import FileIO

from headrace.connect.errors import RecordError
from headrace.connectors.files.local.file_seen import GONE, FileSeen, unreadable
from headrace.connectors.files.local.remembered import Remembered
from headrace.connectors.files.local.witness import holds
from headrace.connectors.files.proof import Proof
from headrace.sources.extractors.streams import Compression

_Asked = tuple[int, int, int, frozenset[Proof]]


class PrefixCheck:
    """Looks into files at each plan; a packed one is unpacked only once while it does not change."""

    def __init__(self) -> None:
        self._answers = Remembered[tuple[_Asked, bool]]()

    def keep(self, shown: Sequence[str]) -> None:
        """Forget all files that a listing has not *shown*."""
        self._answers.keep(shown)

    def holds(self, file: FileSeen, packing: Compression, proofs: Collection[Proof]) -> bool:
        """Whether *proofs* hold for *file*, and so for one that is gone again.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
        """
        if not proofs:
            return True
        if packing is Compression.NONE:
            return _holds(file.path, packing, proofs)
        asked = (file.size, file.inode, file.touched_ns, frozenset(proofs))
        known = self._answers.get(file.path)
        if known is None or known[0] != asked:
            known = asked, _holds(file.path, packing, proofs)
            self._answers[file.path] = known
        return known[1]


def _holds(path: str, packing: Compression, proofs: Collection[Proof]) -> bool:
    try:
        with FileIO(path) as raw:
            return holds(raw, packing, proofs)
    except GONE:
        return True
    except RecordError:
        # Damaged before the place up to which it was read without a complaint.
        return False
    except OSError as error:
        raise unreadable("file", path, error) from error
