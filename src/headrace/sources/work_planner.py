"""What is to be read of the objects that a listing shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetReader, OffsetValue, SourceOffset, SourcePartition
from headrace.formats.format import ReadLimits
from headrace.sources.acknowledging import Acknowledging
from headrace.sources.author_checks import version_of
from headrace.sources.change_policy import ChangePolicy, Policy, is_changed
from headrace.sources.destination import Destination
from headrace.sources.item import Context, NativeItem
from headrace.sources.item_reader import ItemToRead
from headrace.sources.keys import K
from headrace.sources.ledger import Ledger
from headrace.sources.lookback import Lookback
from headrace.sources.offset_entry import DONE, QUARANTINED, VERSION, entry_data
from headrace.sources.quarantine import sent_nothing
from headrace.sources.source import NativeSource
from headrace.sources.unfinished import Unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRules:
    """What the configuration says. *owns* tells whether this task reads an object.

    *goes_to* tells where its records go; *topic_later* says that the last evolution may tell the topic.
    """

    goes_to: Callable[[Context[Any]], Destination]
    topic_later: bool
    changed: Policy
    limits: ReadLimits
    owns: Callable[[SourcePartition, int | None], bool]


class WorkPlanner(Generic[K]):
    """Decides by the *ledger*, the committed *offsets* and what the *rules* say; used on one thread.

    The ledger knows what this task has begun; *lookback* is told what need not be read any more, and
    *unfinished* what is in quarantine.
    """

    def __init__(
        self,
        source: NativeSource[K],
        rules: ScanRules,
        *,
        offsets: OffsetReader,
        lookback: Lookback[K],
        unfinished: Unfinished[K],
    ) -> None:
        self._source = source
        self._rules = rules
        self._offsets = offsets
        self._lookback = lookback
        self._overwritten = ChangePolicy(rules.changed)
        self._unsent = set[SourcePartition]()
        self._unfinished = unfinished
        self.ledger = Ledger(unfinished)
        self.acknowledging = Acknowledging(source)

    def left_of(self, item: NativeItem[K], offset: SourceOffset | None) -> Iterator[ItemToRead]:
        """What is left of *item* behind *offset*, if anything is."""
        work = self._work(item)
        self.ledger.hold(work.partition, work.context.native_key, work.version)
        yield from self._left(work, offset)

    def new_among(self, window: Sequence[NativeItem[K]]) -> Iterator[ItemToRead]:
        """The items of *window* to read, looked up in the store together."""
        ours = [self._work(each) for each in window if self._is_ours(each)]
        new = [each.partition for each in ours if each.partition not in self.ledger]
        stored = self._offsets.offsets(new) if new else {}
        for work in ours:
            held, sent = work.partition in self.ledger, self.ledger.version_of(work.partition)
            if held and not is_changed(sent, work.version):
                continue
            self.ledger.hold(work.partition, work.context.native_key, work.version)
            if not held:
                yield from self._left(work, stored[work.partition])
            elif self._is_read_again(work, sent):
                yield work

    def put_aside(self, work: ItemToRead, offset: SourceOffset) -> None:
        """*work* is in quarantine, as *offset* says."""
        self._unfinished.add(work.partition, work.context.native_key)
        if sent_nothing(offset):
            self._unsent.add(work.partition)

    def confirm(self, done: Mapping[SourcePartition, SourceOffset]) -> None:
        """The commits that say that these are *done*, or in quarantine, have happened; on the task's own thread."""
        for partition, offset in done.items():
            key = self.ledger.key_of(partition)
            if key is not None and offset.get(DONE):
                self.acknowledging.note(key, offset.get(VERSION))
                self._unfinished.remove([partition])
            elif key is not None:
                # It may have been done before, in another version, and told so after it was put aside.
                self._unfinished.add(partition, key)
        self.ledger.confirm(done)
        self.acknowledging.tell()

    def again(self, work: ItemToRead) -> ItemToRead | None:
        """*work* after its source failed: to go on behind what was read, or from the beginning where it must.

        ``None`` when it is left alone, because it is another object now. Raises what the source does.
        """
        item = work.item
        if type(self._source).item is not NativeSource.item:
            item = self._source.item(work.context.native_key)
        again = self._work(item)
        changed = is_changed(work.version, again.version)
        if work.offset is not None and not changed and self._source.resumes:
            return dataclasses.replace(work, item=item)
        self.ledger.hold(work.partition, work.context.native_key, again.version)
        if work.offset is None or not changed or self._reread(again, work.version):
            return again
        self._settled(work)
        return None

    def _work(self, item: NativeItem[K]) -> ItemToRead:
        context = item.context()
        entry = self._source.entry_from_context(context)
        return ItemToRead(item=item, context=context, entry=entry, version=version_of(item))

    def _is_ours(self, item: NativeItem[K]) -> bool:
        context = item.context()
        named = self._source.offset_key(context.native_key).partition
        is_ours = self._rules.owns(named, self._rules.goes_to(context).partition)
        if not is_ours:
            self._unfinished.remove([named])
        return is_ours

    def _reread(self, work: ItemToRead, sent: OffsetValue) -> bool:
        return self._overwritten.is_reread(work.context.native_key, sent=sent, now=work.version)

    def _is_read_again(self, work: ItemToRead, sent: OffsetValue) -> bool:
        """Whether to read what was read in the version *sent*, and is another one now."""
        if work.partition not in self._unsent:
            return self._reread(work, sent)
        self._unsent.discard(work.partition)
        return True

    def _left(self, work: ItemToRead, offset: SourceOffset | None) -> Iterator[ItemToRead]:
        if offset is None:
            yield work
        elif is_changed(offset.get(VERSION), work.version):
            if sent_nothing(offset) or self._reread(work, offset.get(VERSION)):
                yield work
            else:
                self._settled(work)
        elif offset.get(QUARANTINED):
            self.put_aside(work, offset)
            self._settled(work)
        elif offset.get(DONE):
            self._settled(work)
            self.acknowledging.note(work.context.native_key, offset.get(VERSION))
        elif not self._source.resumes:
            yield work
        else:
            entry = self._source.entry_from_data(entry_data(work.partition, offset))
            if entry is None:
                raise _no_entry(self._source, work)
            yield dataclasses.replace(work, entry=entry, offset=offset)

    def _settled(self, work: ItemToRead) -> None:
        """Nothing of *work* is read, and what the store says of it stays."""
        self._lookback.add(work.context.native_key)
        self.ledger.confirm([work.partition])


def _no_entry(source: NativeSource[K], work: ItemToRead) -> TaskFailedError:
    return TaskFailedError(
        f"{work.context.native_key}: It was half read, and {type(source).__name__}.entry_from_data gives None "
        "for it, so that it would be read from its beginning and records would come twice. A source whose "
        "objects cannot be gone on with must say so: resumes = False."
    )
