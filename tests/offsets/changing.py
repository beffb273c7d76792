"""A stage for changes of offsets: real stores, a connector that does as it is told, and faults at each step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from doubles.puppets import PolledPuppet
from headrace.connect.connector import SourceConnector
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.herder.requests import OffsetChange
from headrace.kafka.producer import Waiting
from headrace.kafka.sender import OffsetEntry
from headrace.observe.events import Event
from headrace.offsets.administration import OffsetChanges
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.store import LockedOffsetStore, OffsetStore
from headrace.offsets.target import DriverStore, OffsetTopic
from headrace.runtime.channel_server import Channel
from headrace.runtime.engine import Capacity
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.storage.memory import (
    MemoryChangeStore,
    MemoryConfigStore,
    MemoryOffsetStore,
    MemoryStatusStore,
)
from headrace.storage.protocols import (
    ChangeStore,
    ConfigStore,
    HistoryEntry,
    Intent,
    Phase,
    Retention,
    StoredConnector,
)
from headrace.task.connector_spec import Delivery
from runtime.coordinators import MemoryCoordinator
from runtime.desk import SPEC, FakeEngine, Nobody

A = SourcePartition(filename="a")
B = SourcePartition(filename="b")
STORED = StoredConnector(name="c", config={"name": "c"}, target_state="PAUSED")


class KilledError(BaseException):
    """The process ends here: nothing catches it."""


@dataclass
class Faults:
    """Where something goes wrong, once, and how; *reached* is what happened, in order."""

    at: str | None = None
    error: Callable[[], BaseException] = KilledError
    reached: list[str] = field(default_factory=list[str])

    def point(self, name: str) -> None:
        """Go wrong here, if it is here."""
        self.reached.append(name)
        if name == self.at:
            self.at = None
            raise self.error()


class FaultyChanges:
    """A store of changes with faults around each write."""

    def __init__(self, inner: ChangeStore, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """As the other."""
        return self._inner.entries(connector)

    def open_intents(self) -> Sequence[Intent]:
        """As the other."""
        return self._inner.open_intents()

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """As the other."""
        self._faults.point("before begin")
        begun = self._inner.begin(intent, keep)
        self._faults.point("after begin")
        return begun

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """As the other."""
        self._faults.point("before move")
        moved = self._inner.move(intent, phase)
        self._faults.point("after move")
        return moved

    def finish(self, intent: Intent, entries: Sequence[OffsetEntry] = ()) -> None:
        """As the other."""
        self._faults.point("before finish")
        self._inner.finish(intent, entries)
        self._faults.point("after finish")

    def abandon(self, intent: Intent) -> None:
        """As the other."""
        self._faults.point("before abandon")
        self._inner.abandon(intent)
        self._faults.point("after abandon")


class Asked(PolledPuppet):
    """A connector whose hooks do as the test says, and remember what they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Offsets]] = []
        self.refusal: Exception | None = None
        self.veto: Exception | None = None
        self.answer = True
        self.visible: Mapping[SourcePartition, SourceOffset] = {}

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """Refuse if the test says so."""
        self.asked.append(("validate", offsets))
        if self.refusal:
            raise self.refusal

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """Veto if the test says so."""
        self.asked.append(("alter", offsets))
        self.visible = self.context.offsets.known()
        if self.veto:
            raise self.veto
        return self.answer


@dataclass
class Stage:
    """Stores, services and faults; *local* puts the offsets into the same storage as their changes."""

    changes_store: ChangeStore
    offsets: OffsetStore
    configs: ConfigStore
    local: bool = False
    exactly_once: bool = True
    faults: Faults = field(default_factory=Faults)
    connector: SourceConnector = field(default_factory=Asked)
    events: list[Event] = field(default_factory=list[Event])
    now_ms: int = 1_700_000_000_000
    # So many partitions of a commit arrive before it fails; without transactions only.
    arriving: int | None = None
    coordinator: MemoryCoordinator | None = None

    def __post_init__(self) -> None:
        self.locked = LockedOffsetStore(self.offsets)

    @property
    def spec(self) -> RunSpec:
        """The connector, ready to be asked."""
        return replace(
            SPEC,
            connector=self.connector,
            delivery=Delivery.EXACTLY_ONCE if self.exactly_once else Delivery.AT_LEAST_ONCE,
            offsets=DriverStore() if self.local else OffsetTopic(name="offsets"),
        )

    def changes(self, *, hook_seconds: float = 20.0) -> OffsetChanges:
        """What is tested, as a new process has it."""
        return OffsetChanges(
            self._services(),
            FaultyChanges(self.changes_store, self.faults),
            now_ms=lambda: self.now_ms,
            hook_seconds=hook_seconds,
        )

    def restarted(self) -> OffsetChanges:
        """What is tested, as the next process has it, after it has recovered."""
        self.faults.at = None
        self.arriving = None
        changes = self.changes()
        assert changes.recover(self.configs.connectors(), lambda _: self.spec) == {}
        assert list(self.changes_store.open_intents()) == []
        return changes

    def put(self, offsets: Offsets) -> None:
        """Have these offsets committed."""
        self.locked.put("c", offsets)

    def known(self) -> Mapping[SourcePartition, SourceOffset]:
        """What is committed now."""
        return dict(self.locked.current("c").known())

    def asked(self) -> list[tuple[str, Offsets]]:
        """What the connector was asked."""
        return cast("Asked", self.connector).asked

    def _services(self) -> Services:
        engine = FakeEngine(lambda *_: None)
        return Services(
            engine=engine,
            # Nothing here runs a slot.
            channel=cast("Channel", None),
            capacity=Capacity(2),
            offsets=ConnectorOffsetStores(self.locked),
            task_counts=self.configs,
            statuses=MemoryStatusStore(),
            group_id="g",
            worker_id="w",
            run_id="r",
            timing=Timing(),
            emit=self.events.append,
            coordinator=lambda _: self.coordinator or MemoryCoordinator(self._fence),
            commit_offsets=self._commit,
            processes=Nobody(),
        )

    def _fence(self, ids: Collection[str], _: Waiting) -> None:
        self.faults.point(f"fence {len(ids)}")

    def _commit(self, spec: RunSpec, offsets: Offsets, still_ours: Callable[[], None]) -> None:
        if spec.exactly_once:
            still_ours()
        self.faults.point("before commit")
        if self.arriving is not None:
            self.locked.put(spec.name, dict(list(offsets.items())[: self.arriving]))
            raise self.faults.error()
        self.locked.put(spec.name, offsets)
        self.faults.point("after commit")


def memory_stage() -> Stage:
    """A stage in memory, with the offsets in a topic of their own."""
    offsets, configs = MemoryOffsetStore(), MemoryConfigStore()
    return Stage(
        changes_store=MemoryChangeStore(offsets, configs), offsets=offsets, configs=configs
    )


def change(partition: object, offset: object) -> OffsetChange:
    """One element of a request."""
    return OffsetChange(partition=partition, offset=offset)
