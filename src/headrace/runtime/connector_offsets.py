"""The committed offsets of one connector, wherever they are: in the worker's store, or in a topic of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.runtime.global_copies import GlobalCopies
from headrace.runtime.offset_desk import OffsetDesk, OffsetSnapshot
from headrace.storage.overlaid_offsets import OverlaidOffsets, missing_below

_Known = Mapping[SourcePartition, SourceOffset]
_NOTHING: _Known = MappingProxyType({})

Write = Callable[[Sequence[OffsetEntry]], None]
"""Commits records of an offsets topic."""


class ConnectorOffsets(Protocol):
    """One connector's. Any thread may call; each call blocks on the stores and raises what they raise."""

    def are_copied(self) -> bool:
        """Whether what tasks commit is to be copied to the worker's store."""
        ...

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now. Writes nothing, and makes no topic."""
        ...

    def foreign(self) -> Offsets:
        """Those that others stored under bytes of their own, now, in the place that the connector's tasks write."""
        ...

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        ...

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for others' bytes of them, where the tasks write."""
        ...

    def catch_up(self) -> None:
        """Have what was committed and not copied, because of a kill or an outage, copied soon."""
        ...

    def settle(self, seconds: float) -> bool:
        """Wait until all copies are written, at most *seconds*; whether they are."""
        ...


class WorkerOffsets:
    """``ConnectorOffsets`` in the worker's store.

    Copies that still wait, of a topic of its own that the connector had before, are written before anything else is.
    """

    def __init__(self, desk: OffsetDesk, connector: str, copies: GlobalCopies) -> None:
        self._desk = desk
        self._connector = connector
        self._copies = copies

    def are_copied(self) -> bool:
        """They are there."""
        return False

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now."""
        return self._desk.current(self._connector)

    def foreign(self) -> Offsets:
        """Those that others stored under bytes of their own, now."""
        return self._desk.foreign(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        self._copies.finish(self._connector)
        self._desk.put(self._connector, offsets)

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for others' bytes of them."""
        self._copies.finish(self._connector)
        write(self._desk.entries_for(self._connector, offsets))

    def catch_up(self) -> None:
        """Have copies that wait written at once: slots write to the same place."""
        self._copies.finish(self._connector)

    def settle(self, seconds: float) -> bool:
        """At once: there are no copies."""
        return True


class OwnTopic(Protocol):
    """A topic of source offsets besides the worker's."""

    def desk(self) -> OffsetDesk | None:
        """The store over it, ``None`` while there is no such topic."""
        ...

    def ensured(self) -> OffsetDesk:
        """The store over it; the topic is made where it is missing."""
        ...


class OwnTopicOffsets:
    """``ConnectorOffsets`` in a topic of the connector's own, over those in the worker's store (KIP-618).

    What is committed in the *topic* is copied to the *worker*'s store afterwards, and what is removed is removed
    there first: a value that is left there would count again.
    """

    def __init__(
        self, connector: str, topic: OwnTopic, *, worker: OffsetDesk, copies: GlobalCopies
    ) -> None:
        self._connector = connector
        self._topic = topic
        self._worker = worker
        self._copies = copies
        self._seen: tuple[_Known, _Known, _Known] | None = None

    def are_copied(self) -> bool:
        """So that the connector may give up its topic."""
        return True

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now: the connector's own, and the worker's where it has none."""
        # Its own first: what is being removed is gone from the worker's store before, and must not show there.
        own = self._own()
        below = self._worker.current(self._connector).known()
        return OffsetSnapshot(self._overlaid(own, below))

    def foreign(self) -> Offsets:
        """Those that others stored under bytes of their own in the connector's topic, now."""
        return self._topic.ensured().foreign(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        desk = self._topic.ensured()
        self._around(offsets, lambda: desk.put(self._connector, offsets))

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for others' bytes of them in the connector's topic."""
        entries = self._topic.ensured().entries_for(self._connector, offsets)
        self._around(offsets, lambda: write(entries))

    def catch_up(self) -> None:
        """Have what is in the connector's topic and not in the worker's store copied soon."""
        own = self._own()
        below = self._worker.current(self._connector).known()
        self._copies.later(self._connector, missing_below(own, below))

    def settle(self, seconds: float) -> bool:
        """Wait until all copies are written, at most *seconds*; whether they are."""
        return self._copies.settle(self._connector, seconds)

    def _around(self, offsets: Offsets, commit: Callable[[], None]) -> None:
        values = {each: offset for each, offset in offsets.items() if offset is not None}
        self._copies.first(self._connector, {each: None for each in offsets if each not in values})
        commit()
        self._copies.later(self._connector, values)

    def _own(self) -> _Known:
        desk = self._topic.desk()
        return _NOTHING if desk is None else desk.current(self._connector).known()

    def _overlaid(self, own: _Known, below: _Known) -> _Known:
        """The same object as before where both are: that tells that nothing is new."""
        seen = self._seen
        if seen is None or seen[0] is not own or seen[1] is not below:
            seen = self._seen = (own, below, OverlaidOffsets(own, below) if own else below)
        return seen[2]
