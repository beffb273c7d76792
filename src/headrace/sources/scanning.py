"""Lists a source again and again and reads what is new: the body of the reading thread."""

from __future__ import annotations

import io
import itertools
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.record import BadRecord
from headrace.connect.task import Split
from headrace.formats.damage import DamagedObjectError
from headrace.sources.backoff import Backoff
from headrace.sources.destination import Destination, no_topic
from headrace.sources.extractor import Extractor
from headrace.sources.item import NativeItem
from headrace.sources.item_reader import ItemReader, ItemToRead
from headrace.sources.keys import K
from headrace.sources.listing import Lister
from headrace.sources.lookback import Lookback
from headrace.sources.source import NativeSource
from headrace.sources.unfinished import Unfinished
from headrace.sources.work_planner import ScanRules, WorkPlanner

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
class BrokenOff:
    """What was read of an item is not followed by the rest of it: the item begins again, or is left alone."""

    partition: SourcePartition


@dataclass(frozen=True, slots=True)
class Idle:
    """A listing showed nothing new."""


@dataclass(frozen=True, slots=True)
class Finished:
    """All that was planned has been read."""


Scanned = Read | Ended | BrokenOff | Idle | Finished | RecordError | RetriableError
"""What the reading thread hands over, in order. Errors are raised by ``poll`` and do not end the thread."""


class Scanner(Generic[K]):
    """Reads *source* through *extractor*, item after item, for ever; used on one thread.

    *offsets* know what was read before, *lookback* where the next listing begins. What is *unfinished* is
    looked for whatever they say. *wait* waits so many seconds; true says to stop.
    """

    def __init__(
        self,
        source: NativeSource[K],
        extractor: Extractor,
        rules: ScanRules,
        *,
        offsets: OffsetReader,
        lookback: Lookback[K],
        unfinished: Unfinished[K],
        wait: Callable[[float], bool],
    ) -> None:
        self._source = source
        self._extractor = extractor
        self._rules = rules
        self._lookback = lookback
        self._unfinished = unfinished
        self._behind = dict[K, K | None]()
        self._wait = wait
        self._backoff = Backoff()
        self._lister = Lister(source)
        self.planner = WorkPlanner(
            source, rules, offsets=offsets, lookback=lookback, unfinished=unfinished
        )

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
            works = None
            while works is None:
                try:
                    works = list(self.planner.left_of(find(split), split.offset))
                except (OSError, RetriableError) as error:
                    yield self._told(error, f"{dict(split.partition)} cannot be found")
                    if self._wait(self._backoff.next_seconds()):
                        return
            for work in works:
                yield from self._read(work)
        yield Finished()

    def _new_items(self) -> Iterator[ItemToRead]:
        start = self._lookback.start
        self.planner.ledger.forget_before(start)
        items = itertools.chain(self._passed_over(start), self._lister.listed(start))
        while window := list(itertools.islice(items, _WINDOW)):
            yield from self.planner.new_among(window)

    def _passed_over(self, start: K | None) -> Iterator[NativeItem[K]]:
        """The unfinished objects that a listing from *start* on does not show.

        Each is listed from the key before it, because a source need not show the one that it begins at.
        """
        keys = [] if start is None else self._unfinished.before(start)
        before: K | None = None
        for key in keys:
            before = self._behind.get(key, before)
            for item in self._lister.listed(before):
                found = item.context().native_key
                if not found < key:
                    if found == key:
                        yield item
                    break
                before = found
            self._behind[key] = before

    def _read(self, work: ItemToRead) -> Iterator[Scanned]:
        """All of one item. When the source fails, it is opened again behind what was read."""
        failed = False
        while True:
            try:
                if failed:
                    again = self.planner.again(work)
                    if again is None or again.offset != work.offset:
                        yield BrokenOff(work.partition)
                    if again is None:
                        return
                    work = again
                reader = ItemReader(
                    work, self._extractor, goes_to=self._goes_to(work), limits=self._rules.limits
                )
                failed = False
                try:
                    for each in _pieces(reader, work):
                        offset = _offset_behind(each)
                        if offset is not None:
                            work = work.behind(offset)
                            self._backoff.reset()
                        yield each
                finally:
                    reader.close()
            except DamagedObjectError as damage:
                yield self._quarantined(work, damage)
            except (OSError, RetriableError) as error:
                failed = True
                yield self._told(error, f"{work.context.native_key} cannot be read")
                if self._wait(self._backoff.next_seconds()):
                    return
                continue
            self._lookback.add(work.context.native_key)
            return

    def _quarantined(self, work: ItemToRead, damage: DamagedObjectError) -> RecordError:
        """*damage*, told once: neither this task nor a later one reads more of the item."""
        topic = self._goes_to(work).topic or None
        error = work.in_quarantine(damage, self._extractor.signature(), topic=topic)
        assert error.bad is not None
        self.planner.put_aside(work, error.bad.source_offset or {})
        return error

    def _goes_to(self, work: ItemToRead) -> Destination:
        goes_to = self._rules.goes_to(work.context)
        if not goes_to.topic and not self._rules.topic_later:
            raise no_topic(work.context.native_key)
        return goes_to

    def _told(self, error: OSError | RetriableError, what: str) -> RetriableError:
        """*error* as one that passes; raises ``TaskFailedError`` for one that does not."""
        _log.debug("%s: %s", what, error)
        if isinstance(error, RetriableError):
            return error
        if isinstance(error, io.UnsupportedOperation):
            # An OSError that never passes.
            raise TaskFailedError(f"{what}: Its stream does not support {error}.") from error
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


def _offset_behind(piece: Scanned) -> SourceOffset | None:
    """Where reading goes on behind *piece* of an item, if the item has more."""
    match piece:
        case Read(batch=batch):
            return batch.offset_at(-1)
        case RecordError(bad=BadRecord(source_offset=offset)):
            return offset
        case _:
            return None
