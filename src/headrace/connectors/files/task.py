"""Reads one slot's share of a plan, split by split, in order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.partition import SourceOffset
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.file_opener import FileOpener
from headrace.connectors.files.local.file_opener import LocalFileOpener
from headrace.connectors.files.quarantine import quarantine
from headrace.connectors.files.reading import SplitReader
from headrace.connectors.files.stored.file_opener import StoreFileOpener
from headrace.formats.damage import DamagedObjectError
from headrace.sources.completion_tracker import CompletionTracker

_LOG = logging.getLogger(__name__)


class FilesTask(SourceTask):
    """Reads its splits one after the other; memory does not depend on the files' sizes.

    A file that is no longer the one that was planned is left to the next plan, which knows what the
    configuration says about that.
    """

    files_config: ClassVar[type[FilesConfig]] = FilesConfig
    """Reads the configuration; another connector's may be written with other keys."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._config = self.files_config.parse(config)
        self._waiting = deque[Split](self.context.splits)
        self._reader: SplitReader | None = None
        self._completion = CompletionTracker()
        self._opener: FileOpener | None = None

    def poll(self) -> list[SourceBatch] | None:
        """The next records of the share; ``None`` when it is finished."""
        while self._reader is not None or self._waiting:
            batches = self._next()
            if batches is not None:
                self._note(batches[-1])
                return batches
            self._finish()
        return None

    def resumes_cheaply(self) -> bool:
        """A compressed file would have to be unpacked again from its beginning."""
        return self._reader is None or not self._reader.packed

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Marks files as done whose last bytes held no record."""
        return self._completion.due(offsets)

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        if getattr(self, "_reader", None) is not None:
            self._close()

    def _open(self, split: Split) -> SplitReader | None:
        opener = self._opener or self._made_opener()
        reader = SplitReader(split, self._config, opener, stopping=self.context.stopping)
        self._reader = reader
        if reader.open():
            return reader
        self._reader = None
        _LOG.warning("%s changed since it was planned; the next plan decides.", split.partition)
        return None

    def _made_opener(self) -> FileOpener:
        root = self._config.root
        if root is None:
            self._opener = LocalFileOpener()
        else:
            self._opener = StoreFileOpener(root, self._config.open_store(root))
        return self._opener

    def _next(self) -> list[SourceBatch] | None:
        try:
            reader = self._reader or self._open(self._waiting[0])
            return reader.next_batches() if reader else None
        except RecordError as error:
            self._completion.passed(error)
            if error.bad is not None:
                self._go_on_behind(error.bad.source_offset)
            raise
        except DamagedObjectError as damage:
            raise self._quarantined(damage) from damage
        except RetriableError:
            self._close()
            raise

    def _quarantined(self, damage: DamagedObjectError) -> RecordError:
        """What to raise for *damage*; the next call goes on with the next split."""
        assert self._reader is not None
        error = quarantine(self._waiting.popleft(), damage, topic=self._reader.topic)
        self._completion.passed(error)
        self._close()
        return error

    def _note(self, batch: SourceBatch) -> None:
        offset = batch.offset_at(-1)
        if offset is not None:
            self._completion.sent(batch.source_partition, offset)
            self._go_on_behind(offset)

    def _go_on_behind(self, offset: SourceOffset | None) -> None:
        """Let a reader that is opened again for the same split begin behind *offset*."""
        if offset is not None:
            self._waiting[0] = replace(self._waiting[0], offset=offset)

    def _finish(self) -> None:
        split, reader = self._waiting.popleft(), self._reader
        end = reader.end() if reader else None
        if end is not None:
            self._completion.ended(split.partition, end)
        self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None
