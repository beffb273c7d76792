"""The task of a native source: an author says what the source is, and overrides little else."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar, final

from headrace.connect.batch import SourceBatch
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.task import Offsets, Polled, SourceTask, Split
from headrace.sources.config import SourceConfig
from headrace.sources.distribution import owner
from headrace.sources.endings import Endings
from headrace.sources.evolving import EvolvingRecord, evolved
from headrace.sources.extractors.by_name import extractor_named
from headrace.sources.extractors.extractor import Extractor
from headrace.sources.extractors.format import ReadLimits
from headrace.sources.item import NativeItem
from headrace.sources.item_reader import DONE
from headrace.sources.lookback import Lookback
from headrace.sources.marks import TASK_ID, TASKS, Marker, told_keys
from headrace.sources.pump import Bounds, Pump
from headrace.sources.scanning import Ended, Finished, Idle, Read, Scanned, Scanner, ScanRules
from headrace.sources.source import NativeSource

KEY = "key"
"""Under which a planned split's details hold the text of a native key."""

_POLL_SECONDS = 0.5
_CHUNK_BYTES = _RECORD_BYTES = 1024 * 1024


class NativeSourceTask(SourceTask):
    """Reads the objects of a source that is polled: on a thread of its own, ahead of ``poll``.

    An author overrides :meth:`source`, and whatever else they need.
    """

    config_class: ClassVar[type[SourceConfig]] = SourceConfig

    @abstractmethod
    def source(self, config: Any) -> NativeSource[Any]:  # noqa: ANN401 (an object of the author's own config class)
        """The source to read, made from *config*, which :meth:`configure` returned. Called once."""

    def configure(self, props: Mapping[str, str]) -> SourceConfig:
        """The configuration, from the user's *props*. Called once, before :meth:`source`."""
        return self.config_class.parse(props)

    def extractor(self, config: Any) -> Extractor:  # noqa: ANN401 (an object of the author's own config class)
        """What turns items into records; the default is what ``extractor.class`` names."""
        return extractor_named(config.extractor, record_bytes=config.extractor_buffer)

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """A last change to a record before it is converted; sees each once, in order.

        Overriding it makes records travel one by one, which is several times slower.
        """
        return record

    def close_resources(self) -> None:
        """Release what :meth:`configure` took. Called once, when the task ends, whatever happened."""

    @final
    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._endings = Endings()
        self._confirming = set[SourcePartition]()
        self._ending = threading.Event()
        self._splits = self.context.splits
        self._evolved = dict[SourcePartition, SourceOffset]()
        self._native: NativeSource[Any] | None = None
        self._pump: Pump[Scanned] | None = None
        settings = self.configure(config)
        self._native = source = self.source(settings)
        self._scanner = self._scanner_of(source, settings, config)
        self._marker = Marker(
            config,
            # What is planned is listed from the beginning.
            size=0 if self._splits else settings.ring_buffer_size,
            codec=source.key_codec(),
            key_of=self._scanner.ledger.key_of,
        )
        self._pump = Pump(
            self._produced,
            size=_size,
            bounds=Bounds(records=2 * settings.max_poll_records, bytes=settings.queue_bytes),
            name=f"read-{self.context.connector}-{self.context.task}",
            ending=self._ending,
        )

    @final
    def poll(self) -> Polled:
        """See :class:`~headrace.connect.task.SourceTask`."""
        assert self._pump is not None
        self._pump.start()
        piece = self._pump.take(_POLL_SECONDS)
        if piece is None:
            return ()
        if isinstance(piece, Idle | Finished):
            return None
        if isinstance(piece, Exception):
            raise piece
        if isinstance(piece, Ended):
            last = self._evolved.pop(piece.partition, {})
            self._endings.ended(piece.partition, {**last, **piece.offset})
            return ()
        return self._polled(piece)

    def _polled(self, read: Read) -> SourceBatch | Sequence[SourceRecord]:
        batch, partition = read.batch, read.work.partition
        if type(self).last_evolution is NativeSourceTask.last_evolution:
            self._endings.sent(partition, batch.offset_at(-1) or {})
            return batch
        records = evolved(batch, read.work, self.last_evolution)
        self._evolved[partition] = records[-1].source_offset or {}
        self._endings.sent(partition, self._evolved[partition])
        return records

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Marks objects as done with the commit of their last record; an override calls this one too."""
        due = dict(self._endings.due(offsets) or {})
        done = {
            partition
            for partition, offset in {**offsets, **due}.items()
            if offset is not None and offset.get(DONE)
        }
        self._confirming |= done
        due.update(self._marker.due(done))
        return due or None

    def commit(self) -> None:
        """What was marked as done is committed now; an override calls this one too."""
        self._scanner.ledger.confirm(self._confirming)
        self._confirming.clear()

    @final
    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        try:
            for each in (getattr(self, "_pump", None), getattr(self, "_native", None)):
                if each is not None:
                    each.close()
        finally:
            self.close_resources()

    def _produced(self) -> Generator[Scanned]:
        """What the reading thread reads: this task's share of a plan, or whatever comes."""
        if self._splits:
            return self._scanner.planned(self._splits, self._found)
        return self._scanner.scanned()

    def _found(self, split: Split) -> NativeItem[Any]:
        assert self._native is not None
        codec = self._native.key_codec()
        assert codec is not None
        return self._native.item(codec.decode(str(split.details[KEY])))

    def _scanner_of(
        self, source: NativeSource[Any], settings: SourceConfig, config: Mapping[str, str]
    ) -> Scanner[Any]:
        tasks, task = int(config.get(TASKS, "1")), int(config.get(TASK_ID, "0"))

        def owns(partition: SourcePartition, kafka_partition: int | None) -> bool:
            chosen = owner(settings.distribution_type.upper(), partition, kafka_partition, tasks)
            return chosen is None or chosen == task

        return Scanner(
            source,
            self.extractor(settings),
            ScanRules(
                topic=settings.topic,
                limits=ReadLimits(
                    rows=settings.max_poll_records,
                    chunk_bytes=_CHUNK_BYTES,
                    record_bytes=_RECORD_BYTES,
                ),
                owns=owns,
            ),
            offsets=self.context.offsets,
            lookback=Lookback(settings.ring_buffer_size),
            start=_start(source, settings, config),
            wait=self._ending.wait,
        )


def _start(source: NativeSource[Any], settings: SourceConfig, config: Mapping[str, str]) -> Any:  # noqa: ANN401 (a key of the source's own type)
    """The key to begin the first listing at: the least of all marks, else what the user says."""
    codec = source.key_codec()
    if codec is None:
        return None
    marks = [codec.decode(text) for text in told_keys(config)]
    if marks:
        return min(marks)
    first = settings.native_start_key
    return None if first is None else codec.decode(first)


def _size(piece: Scanned) -> tuple[int, int]:
    return (len(piece.batch), piece.batch.nbytes) if isinstance(piece, Read) else (0, 0)
