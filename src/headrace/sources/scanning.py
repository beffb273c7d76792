"""Lists a source again and again and reads what is new: the body of the reading thread."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.sources.backoff import Backoff
from headrace.sources.extractors.extractor import Extractor
from headrace.sources.extractors.format import ReadLimits
from headrace.sources.item import NativeItem
from headrace.sources.item_reader import DONE, ItemReader, ItemToRead
from headrace.sources.keys import K
from headrace.sources.ledger import Ledger
from headrace.sources.lookback import Lookback
from headrace.sources.offset_entry import entry_data
from headrace.sources.source import NativeSource

_log = logging.getLogger(__name__)

# How many items are looked up in the store at once.
_WINDOW = 200


@dataclass(frozen=True, slots=True)
class Ended:
    """An item was read to its end, and *offset* says so."""

    partition: SourcePartition
    offset: SourceOffset


@dataclass(frozen=True, slots=True)
class Read:
    """Records that were read of *work*."""

    batch: SourceBatch
    work: ItemToRead


@dataclass(frozen=True, slots=True)
class Idle:
    """A listing showed nothing new."""


@dataclass(frozen=True, slots=True)
class Finished:
    """All that was planned has been read."""


Scanned = Read | Ended | Idle | Finished | RecordError | RetriableError
"""What the reading thread hands over, in order. Errors are raised by ``poll`` and do not end the thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRules:
    """What the configuration says. *owns* tells whether this task reads an object."""

    topic: str | None
    limits: ReadLimits
    owns: Callable[[SourcePartition, int | None], bool]


class Scanner(Generic[K]):
    """Reads *source* through *extractor*, item after item, for ever; used on one thread.

    *ledger* and *offsets* know what was read; *lookback* where the next listing begins, *start* where the
    first one does as long as that does not know. *wait* waits so many seconds; true says to stop.
    """

    def __init__(
        self,
        source: NativeSource[K],
        extractor: Extractor,
        rules: ScanRules,
        *,
        offsets: OffsetReader,
        lookback: Lookback[K],
        start: K | None,
        wait: Callable[[float], bool],
    ) -> None:
        self._source = source
        self._extractor = extractor
        self._rules = rules
        self._offsets = offsets
        self._lookback = lookback
        self._start = start
        self._wait = wait
        self._backoff = Backoff()
        self.ledger = Ledger[K]()

    def scanned(self) -> Generator[Scanned]:
        """Everything that is new; ends when it is told to stop while it waits."""
        while True:
            found = failed = False
            try:
                for work in self._new_items():
                    found = True
                    yield from self._read(work)
            except (OSError, RetriableError) as error:
                yield self._told(error, f"{self._source.name} cannot be listed")
                found, failed = False, True
            if found:
                self._backoff.reset()
                continue
            if not failed:
                yield Idle()
            if self._wait(self._backoff.next_seconds()):
                return

    def planned(
        self, splits: Iterable[Split], find: Callable[[Split], NativeItem[K]]
    ) -> Generator[Scanned]:
        """Everything that is left of *splits*, and then the end. *find* opens a split's item by its key."""
        for split in splits:
            item = None
            while item is None:
                try:
                    item = find(split)
                except (OSError, RetriableError) as error:
                    yield self._told(error, f"{dict(split.partition)} cannot be found")
                    if self._wait(self._backoff.next_seconds()):
                        return
            for work in self._unless_done(self._work(item), split.offset):
                yield from self._read(work)
        yield Finished()

    def _work(self, item: NativeItem[K]) -> ItemToRead:
        context = item.context()
        entry = self._source.entry_from_context(context)
        return ItemToRead(item=item, context=context, entry=entry)

    def _new_items(self) -> Iterator[ItemToRead]:
        start = self._lookback.start
        self.ledger.forget_before(start)
        items = iter(self._source.items(self._start if start is None else start))
        while window := list(itertools.islice(items, _WINDOW)):
            yield from self._new_among(window)

    def _new_among(self, window: Sequence[NativeItem[K]]) -> Iterator[ItemToRead]:
        """The items of *window* to read, looked up in the store together."""
        works = map(self._work, window)
        ours = [each for each in works if self._is_ours(each)]
        stored = self._offsets.offsets([each.partition for each in ours]) if ours else {}
        for work in ours:
            if work.partition not in self.ledger:
                self.ledger.hold(work.partition, work.context.native_key)
                yield from self._unless_done(work, stored[work.partition])

    def _is_ours(self, work: ItemToRead) -> bool:
        return work.partition not in self.ledger and self._rules.owns(
            work.partition, work.context.partition
        )

    def _unless_done(self, work: ItemToRead, offset: SourceOffset | None) -> Iterator[ItemToRead]:
        if offset is None:
            yield work
            return
        if offset.get(DONE):
            self._lookback.add(work.context.native_key)
            self.ledger.confirm([work.partition])
            return
        entry = self._source.entry_from_data(entry_data(work.partition, offset))
        yield work if entry is None else dataclasses.replace(work, entry=entry, offset=offset)

    def _read(self, work: ItemToRead) -> Iterator[Scanned]:
        """All of one item. When the source fails, it is opened again behind what was read."""
        while True:
            try:
                reader = ItemReader(
                    work, self._extractor, topic=self._topic(work), limits=self._rules.limits
                )
                try:
                    for each in _pieces(reader, work):
                        if isinstance(each, Read):
                            work = work.behind(each.batch)
                            self._backoff.reset()
                        yield each
                finally:
                    reader.close()
            except (OSError, RetriableError) as error:
                yield self._told(error, f"{work.context.native_key} cannot be read")
                if self._wait(self._backoff.next_seconds()):
                    return
                continue
            self._lookback.add(work.context.native_key)
            return

    def _topic(self, work: ItemToRead) -> str:
        topic = self._rules.topic or work.context.topic
        if topic is None:
            raise TaskFailedError(
                f"{work.context.native_key}: Nothing tells the topic of its records. Set topic."
            )
        return topic

    def _told(self, error: OSError | RetriableError, what: str) -> RetriableError:
        _log.debug("%s: %s", what, error)
        if isinstance(error, RetriableError):
            return error
        return RetriableError(f"{what} now: {error}. It is tried again.")


def _pieces(reader: ItemReader, work: ItemToRead) -> Iterator[Scanned]:
    while True:
        try:
            batch = reader.next_batch()
        except RecordError as error:
            yield error
            continue
        if batch is None:
            yield Ended(work.partition, reader.end())
            return
        yield Read(batch, work)
