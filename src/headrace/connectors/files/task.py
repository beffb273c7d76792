"""Reads one slot's share of a plan, split by split, in order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

from headrace.connect.batch import SourceBatch
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.reading import SplitReader
from headrace.sources.endings import Endings

_LOG = logging.getLogger(__name__)


class FilesTask(SourceTask):
    """Reads its splits one after the other; memory does not depend on the files' sizes.

    A file that is no longer the one that was planned is left to the next plan, which knows what the
    configuration says about that.
    """

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._config = FilesConfig.parse(config)
        self._waiting = deque[Split](self.context.splits)
        self._reader: SplitReader | None = None
        self._endings = Endings()

    def poll(self) -> list[SourceBatch] | None:
        """The next records of the share; ``None`` when it is finished."""
        while self._reader is not None or self._waiting:
            reader = self._reader or self._open(self._waiting[0])
            batches = reader.next_batches() if reader else None
            if batches is not None:
                self._note(batches[-1])
                return batches
            self._finish(reader)
        return None

    def resumes_cheaply(self) -> bool:
        """A compressed file would have to be unpacked again from its beginning."""
        return self._reader is None or not self._reader.packed

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Marks files as done whose last bytes held no record."""
        return self._endings.due(offsets)

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        if getattr(self, "_reader", None) is not None:
            self._close()

    def _open(self, split: Split) -> SplitReader | None:
        reader = SplitReader(split, self._config)
        if reader.open():
            self._reader = reader
            return reader
        _LOG.warning("%s changed since it was planned; the next plan decides.", split.partition)
        return None

    def _note(self, batch: SourceBatch) -> None:
        offset = batch.offset_at(-1)
        if offset is not None:
            self._endings.sent(batch.source_partition, offset)

    def _finish(self, reader: SplitReader | None) -> None:
        split = self._waiting.popleft()
        end = reader.end() if reader else None
        if end is not None:
            self._endings.ended(split.partition, end)
        self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None
