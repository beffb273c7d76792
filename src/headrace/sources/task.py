"""The task of a native source: an author says what the source is, and overrides little else."""

from __future__ import annotations

import dataclasses
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar, Literal, final

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.task import Offsets, Polled, SourceTask, Split
from headrace.formats.by_name import FormatOptions
from headrace.sources.author_checks import found_item, made_source
from headrace.sources.completion_tracker import CompletionTracker
from headrace.sources.config import SourceConfig
from headrace.sources.evolving import EvolvingRecord, evolved, evolved_batch
from headrace.sources.extractor import Extractor, extractor_named
from headrace.sources.item import Context, NativeItem
from headrace.sources.json_numbers import Numbers
from headrace.sources.lookback import Lookback
from headrace.sources.marks import TaskMark
from headrace.sources.offset_entry import KEPT, is_closed
from headrace.sources.pump import Bounds, Pump
from headrace.sources.scanning import BrokenOff, Ended, Finished, Idle, Read, Scanned, Scanner
from headrace.sources.source import NativeSource
from headrace.sources.task_setup import first_key, rules_of, unfinished_of

KEY = "key"
"""Under which a planned split's details hold the text of a native key."""

_POLL_SECONDS = 0.5
# A poll without records counts as idle and is waited after, so the end of an object is none.
_ENDS_AT_ONCE = 1000


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
        return extractor_named(
            config.extractor,
            FormatOptions(
                record_bytes=config.extractor_buffer, tombstones=config.json_null == "tombstone"
            ),
        )

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """A last change to a record before it is converted; sees each once, in order.

        Its topic and partition are what the configuration or the item's context tells; a topic that no one
        has told is empty, and has to be set here. Overriding it makes records travel one by one, which is
        several times slower: see :meth:`last_evolution_of_batch`.
        """
        return record

    def last_evolution_of_batch(self, batch: SourceBatch, context: Context[Any]) -> SourceBatch:
        """The same for some records of one item at once; override this one or :meth:`last_evolution`.

        Returns as many rows, in the same order and of the same source partition. Properties may be added to
        ``batch.offsets``; those of the framework (recordCount, anchor, skip, version, format) stay as they are.
        """
        return batch

    def close_resources(self) -> None:
        """Release what :meth:`configure` took. Called once, when the task ends, whatever happened."""

    @final
    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._completion = CompletionTracker()
        self._confirming = dict[SourcePartition, SourceOffset]()
        self._ending = threading.Event()
        self._splits = self.context.splits
        self._evolved = dict[SourcePartition, SourceOffset]()
        self._native: NativeSource[Any] | None = None
        self._pump: Pump[Scanned] | None = None
        self._inside: SourcePartition | None = None
        self._idle = False
        self._waiting = deque[Read | RecordError]()
        self._evolves = _evolves(type(self))
        settings = self.configure(config)
        self._numbers: Numbers = settings.json_numbers
        self._native = made_source(self, settings)
        self._begin(self._native, settings, config)
        self._pump = Pump(
            self._produced,
            size=_size,
            bounds=Bounds(records=2 * settings.max_poll_records, bytes=settings.queue_bytes),
            name=f"read-{self.context.connector}-{self.context.task}",
            ending=self._ending,
        )

    def _begin(
        self, source: NativeSource[Any], settings: SourceConfig, config: Mapping[str, str]
    ) -> None:
        unfinished = unfinished_of(source, config)
        self._scanner = Scanner(
            source,
            self.extractor(settings),
            rules_of(source, settings, config, topic_later=self._evolves is not None),
            offsets=self.context.offsets,
            lookback=Lookback(settings.ring_buffer_size, first=first_key(source, settings, config)),
            unfinished=unfinished,
            wait=self._ending.wait,
        )
        self._mark = TaskMark(
            config,
            # What is planned is listed from the beginning.
            size=0 if self._splits else settings.ring_buffer_size,
            codec=source.key_codec(),
            key_of=self._scanner.planner.ledger.key_of,
            # Nothing else would find them after a restart where entries do not tell the keys.
            unfinished=None if _is_by_key(source) else unfinished,
        )

    @final
    def poll(self) -> Polled:
        """See :class:`~headrace.connect.task.SourceTask`."""
        assert self._pump is not None
        self._pump.start()
        if self._waiting:
            return self._result(self._waiting.popleft())
        for _ in range(_ENDS_AT_ONCE):
            piece = self._pump.take(_POLL_SECONDS)
            if piece is not None:
                self._idle = isinstance(piece, Idle)
            if not isinstance(piece, Ended | BrokenOff):
                return self._result(piece)
            self._left(piece)
            if self.context.transaction is not None:
                break
        return ()

    def _result(self, piece: Read | Idle | Finished | Exception | None) -> Polled:
        if piece is None:
            return ()
        if isinstance(piece, Idle | Finished):
            return None
        if isinstance(piece, RecordError):
            piece = self._passed(piece)
        if isinstance(piece, Exception):
            raise piece
        return self._polled(piece)

    def _left(self, piece: Ended | BrokenOff) -> None:
        """An object is read no further, or from its beginning."""
        if isinstance(piece, Ended):
            last = self._evolved.get(piece.partition, {})
            kept = {key: value for key, value in piece.offset.items() if key in KEPT}
            self._completion.ended(piece.partition, {**piece.offset, **last, **kept})
        self._close_object(piece.partition, keeps=isinstance(piece, Ended))

    def _close_object(self, partition: SourcePartition, *, keeps: bool = True) -> None:
        """End an object's transaction where objects have their own; *keeps* says whether it is committed."""
        self._inside = None
        self._evolved.pop(partition, None)
        transaction = self.context.transaction
        if transaction is not None and keeps:
            transaction.commit_transaction()
        elif transaction is not None:
            transaction.abort_transaction()

    @final
    def is_idle(self) -> bool:
        """See :class:`~headrace.connect.task.SourceTask`: when a listing, however long, has shown nothing new."""
        return self._idle

    def resumes_cheaply(self) -> bool:
        """See :class:`~headrace.connect.task.SourceTask`: not where an object would have to begin again."""
        assert self._native is not None
        whole = self.context.transaction is not None or not self._native.resumes
        return not (whole and self._inside)

    def _passed(self, error: RecordError) -> RecordError:
        """*error*, with what the last evolution before its record left in the offset."""
        bad = error.bad
        if bad is not None and bad.source_partition in self._evolved:
            evolved = self._evolved[bad.source_partition]
            moved = {key: value for key, value in (bad.source_offset or {}).items() if key in KEPT}
            offset = self._evolved[bad.source_partition] = {**evolved, **moved}
            error = error.about(dataclasses.replace(bad, source_offset=offset))
        self._completion.passed(error)
        if bad is not None and bad.quarantines:
            self._close_object(bad.source_partition)
        return error

    def _polled(self, read: Read) -> SourceBatch | Sequence[SourceRecord]:
        batch, work = read.batch, read.work
        self._inside = work.partition
        if self._evolves == "records":
            return self._evolved_records(read)
        if self._evolves == "batches":
            batch = evolved_batch(batch, work, self.last_evolution_of_batch)
            self._evolved[work.partition] = batch.offset_at(-1) or {}
        self._completion.sent(work.partition, batch.offset_at(-1) or {})
        return batch

    def _evolved_records(self, read: Read) -> Sequence[SourceRecord]:
        """The records up to one that cannot be parsed; that one and those behind it come with the next polls."""
        batch, work = read.batch, read.work
        records, refused = evolved(batch, work, self.last_evolution, self._numbers)
        if refused is not None:
            done = len(records) + 1
            rest = batch.slice(done, len(batch) - done)
            self._waiting += [refused, *([dataclasses.replace(read, batch=rest)] if rest else [])]
        if records:
            offset = self._evolved[work.partition] = records[-1].source_offset or {}
            self._completion.sent(work.partition, offset)
        return records

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Marks objects as done with the commit of their last record; an override calls this one too."""
        due = dict(self._completion.due(offsets) or {})
        closed = {
            partition: offset
            for partition, offset in {**offsets, **due}.items()
            if offset is not None and is_closed(offset)
        }
        self._confirming.update(closed)
        due.update(self._mark.due(closed))
        return due or None

    def commit(self) -> None:
        """What was marked as done, or put in quarantine, is committed now; an override calls this one too."""
        confirmed, self._confirming = self._confirming, {}
        self._scanner.planner.confirm(confirmed)

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
        return found_item(self._native, codec.decode(str(split.details[KEY])))


def _evolves(task: type[NativeSourceTask]) -> Literal["records", "batches"] | None:
    """Which last evolution *task* has; raises ``TypeError`` for both."""
    base = NativeSourceTask
    records = task.last_evolution is not base.last_evolution
    batches = task.last_evolution_of_batch is not base.last_evolution_of_batch
    if records and batches:
        raise TypeError(
            f"{task.__name__} overrides both last_evolution and last_evolution_of_batch. Override one of them."
        )
    return "records" if records else "batches" if batches else None


def _is_by_key(source: NativeSource[Any]) -> bool:
    return type(source).offset_key is NativeSource.offset_key


def _size(piece: Scanned) -> tuple[int, int]:
    return (len(piece.batch), piece.batch.nbytes) if isinstance(piece, Read) else (0, 0)
