"""Two drivers of one connector and a broker, explored in every order of their steps; pure.

A step is one request to a broker, or one answer to a slot. Between two steps of one process any other process may take
any number of its own, and each process may stay where it is for as long as the others have something to do. A worker
that is frozen, a slot that starts late and a plan that is out of date are orders among others.

A transaction is one step, its commit: what is written before it is visible to no one, and lost without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import NamedTuple, TypeVar

_Value = TypeVar("_Value")

SECONDARY = -1
"""The transactional id of the copies of offsets; those of tasks are 0 and up."""


class Order(IntEnum):
    """What happens between a plan and the first write of a slot."""

    INITIALISE_ASK = 0
    ASK_INITIALISE = 1
    INITIALISE = 2
    ALL_INITIALISE_READ_AGAIN = 3
    DRIVER_INITIALISES = 4
    DRIVER_INITIALISES_ASK = 5
    """As with the wire's producer: the driver initialises the ids of each plan, and reads once more, before its slots ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What drivers do. The default is what headrace does; every other value is a way that looks right as well.

    But for the order in which the driver initialises and the slots ask, which is headrace's, too.
    """

    order: Order = Order.INITIALISE_ASK
    has_guard: bool = True
    takes_guard_again: bool = False
    lists_ids: bool = True
    proves_own_writes: bool = True
    fences_secondary: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Two drivers' numbers of *tasks*, and how many *records* each source partition has.

    A *turned* driver gives the first partition to its second task. One that *rewrites* commits offsets before its slots
    start, as it has read them. One that *resets* removes all offsets, once, and everything is to be read again. One that
    is *impatient* leaves its slots alone once, at any moment, and plans again. With *copies*, offsets are copied into a
    second store after their commit.
    """

    tasks: tuple[int, int]
    records: tuple[int, ...] = (1, 1)
    turned: tuple[bool, bool] = (False, False)
    rewrites: tuple[bool, bool] = (False, False)
    resets: tuple[bool, bool] = (False, False)
    impatient: tuple[bool, bool] = (False, False)
    copies: bool = False


class BrokenPromiseError(Exception):
    """A record is committed twice, or the offsets do not say which records are committed."""


Offsets = tuple[int | None, ...]
"""For each source partition the record to read next, if one is stored."""


class Broker(NamedTuple):
    """What Kafka knows. An id that has never been initialised has epoch 0."""

    guard: int
    epochs: tuple[int, ...]
    """Of the ids of tasks; the last one is that of the secondary id."""
    offsets: Offsets
    copies: Offsets
    sent: tuple[int, ...]
    """How many records of each source partition are committed, since the reset."""

    def initialised(self, each: int) -> tuple[Broker, int]:
        """After InitProducerId for an id, which fences the producer before; and the new epoch."""
        epochs = list(self.epochs)
        epochs[each] += 1
        return self._replace(epochs=tuple(epochs)), epochs[each]

    def proven(self, epoch: int) -> Broker | None:
        """After InitProducerId for the guard by who has *epoch* and gets the next one (KIP-360); or it is refused."""
        return self._replace(guard=epoch + 1) if epoch == self.guard else None

    def listed(self) -> list[int]:
        """The ids of tasks that anyone has initialised."""
        return [each for each, epoch in enumerate(self.epochs[:SECONDARY]) if epoch]

    def read(self) -> Offsets:
        """The primary offsets, and below them the copies."""
        both = zip(self.offsets, self.copies, strict=True)
        return tuple(copy if own is None else own for own, copy in both)

    def checked(self) -> Broker:
        """Itself, if its offsets are those of its records."""
        said = tuple(offset or 0 for offset in self.read())
        if said != self.sent:
            raise BrokenPromiseError(f"{self.sent} records are sent, but the offsets say {said}")
        return self


class Next(IntEnum):
    """What comes next on the way to a write."""

    INITIALISE = 0
    ASK = 1
    WRITE = 2
    WAIT = 3


class Slot(NamedTuple):
    """A slot. When its token is withdrawn, what it is doing already continues: its first request, or its writes."""

    task: int
    next: Next
    share: tuple[tuple[int, int], ...]
    """Source partitions, each with its next record."""
    epoch: int = 0
    has_token: bool = True


class Stage(IntEnum):
    """What a driver does next."""

    HOLD = 0
    LIST = 1
    FENCE = 2
    READ = 3
    WRITE = 4
    INITIALISE = 5
    READ_AGAIN = 6
    RUN = 7
    ENDED = 8
    FAILED = 9
    GAVE_UP = 10


class Write(IntEnum):
    """What a driver writes itself."""

    AS_READ = 0
    REMOVE_COPIES = 1
    REMOVE = 2


class Way(NamedTuple):
    """How far a driver has come to a write of its own, and the epoch of the id that it writes under."""

    next: Next = Next.INITIALISE
    epoch: int = 0


class Driver(NamedTuple):
    """A driver and its slots, also those that it no longer counts, and the copies that it has yet to write."""

    stage: Stage = Stage.HOLD
    rounds: int = 0
    guard: int = 0
    has_taken_over: bool = False
    to_fence: tuple[int, ...] = ()
    initialised: tuple[int, ...] = ()
    seen: Offsets = ()
    writes: tuple[Write, ...] = ()
    way: Way = Way()
    slots: tuple[Slot, ...] = ()
    must_plan: bool = False
    is_patient: bool = True
    to_copy: tuple[tuple[int, int], ...] = ()
    copy_way: Way = Way()

    def with_slots(self, *slots: Slot) -> Driver:
        """With *slots* added."""
        return self._replace(slots=tuple(sorted((*self.slots, *slots))))

    def without(self, slot: Slot) -> Driver:
        """With *slot* taken out."""
        at = self.slots.index(slot)
        return self._replace(slots=self.slots[:at] + self.slots[at + 1 :])

    def with_copies(self, offsets: dict[int, int]) -> Driver:
        """With *offsets* to be copied."""
        return self._replace(to_copy=tuple(sorted({**dict(self.to_copy), **offsets}.items())))

    def failed(self) -> Driver:
        """The guard is lost."""
        asks = self.copy_way.next is Next.ASK
        return self._without_tokens()._replace(
            stage=Stage.FAILED, to_copy=() if asks else self.to_copy
        )

    def begins_round(self) -> Driver:
        """Older slots do not count any more."""
        return self._without_tokens()._replace(stage=Stage.HOLD, must_plan=False, way=Way())

    def has_tokens(self) -> bool:
        """Whether a slot counts."""
        return any(each.has_token for each in self.slots)

    def _without_tokens(self) -> Driver:
        # Whoever asks is refused, and writes nothing.
        going_on = (each for each in self.slots if each.next in {Next.INITIALISE, Next.WRITE})
        return self._replace(
            slots=tuple(sorted(each._replace(has_token=False) for each in going_on))
        )


class State(NamedTuple):
    """All there is."""

    broker: Broker
    drivers: tuple[Driver, Driver]

    def survivors(self) -> list[Driver]:
        """The drivers that have not failed."""
        lost = {Stage.FAILED, Stage.GAVE_UP}
        return [each for each in self.drivers if each.stage not in lost]


After = tuple[Broker, Driver]
Step = tuple[str, Callable[[], After]]
"""What a driver or one of its slots may do next, and what is then."""


class Scene:
    """Two drivers that follow *protocol*. Each plans at most as often as *rounds* says, if it does."""

    def __init__(self, protocol: Protocol, layout: Layout, *, rounds: int | None = None) -> None:
        self._protocol = protocol
        self._layout = layout
        self._rounds = rounds

    def start(self) -> State:
        """Nothing has happened yet."""
        count = len(self._layout.records)
        broker = Broker(
            guard=0,
            epochs=(0,) * (max(self._layout.tasks) + 1),
            offsets=(None,) * count,
            copies=(None,) * count,
            sent=(0,) * count,
        )
        return State(broker, (self._driver(0), self._driver(1)))

    def is_complete(self, state: State) -> bool:
        """Whether each record is committed, and each offset copied."""
        broker, layout = state.broker, self._layout
        return broker.sent == layout.records and (
            not layout.copies or broker.copies == broker.offsets
        )

    def steps(self, state: State) -> Iterator[tuple[str, Callable[[], State]]]:
        """All that may happen next."""
        broker, drivers = state
        for which, name in enumerate("AB"):
            for step, take in self._steps_of(which, broker, drivers[which]):
                after = partial(_after, drivers, which, take)
                yield f"{name} {step}", after

    def essence(self, state: State) -> Hashable:
        """Equal for states in which the same can happen: of epochs it has only whether they are current."""
        broker, drivers = state
        known = tuple(epoch > 0 for epoch in broker.epochs)
        each_driver = tuple(self._essence_of(broker, each) for each in drivers)
        return known, broker.offsets, broker.copies, broker.sent, each_driver

    def _essence_of(self, broker: Broker, driver: Driver) -> Hashable:
        epochs = broker.epochs
        slots = (
            (*each[:3], each.epoch == epochs[each.task], each.has_token)
            for each in driver.slots
            if not _is_over(broker, each)
        )
        return (
            driver.stage,
            driver.rounds if self._rounds else None,
            (driver.guard > 0, driver.guard == broker.guard),
            driver.has_taken_over,
            driver.to_fence,
            tuple(map(int.__eq__, driver.initialised, epochs)) if driver.stage < Stage.RUN else (),
            driver.seen if Stage.WRITE <= driver.stage < Stage.RUN else (),
            driver.writes,
            (driver.way.next, driver.way.epoch == epochs[_id_of(driver.writes)]),
            tuple(sorted(slots)),
            (driver.must_plan, driver.is_patient),
            driver.to_copy,
            (driver.copy_way.next, driver.copy_way.epoch == epochs[SECONDARY]),
        )

    def _driver(self, which: int) -> Driver:
        layout, writes = self._layout, list[Write]()
        if layout.rewrites[which]:
            writes = [Write.AS_READ]
        if layout.resets[which]:
            writes = [Write.REMOVE_COPIES, Write.REMOVE] if layout.copies else [Write.REMOVE]
        return Driver(writes=tuple(writes), is_patient=not layout.impatient[which])

    def _steps_of(self, which: int, broker: Broker, driver: Driver) -> Iterator[Step]:
        yield from self._own_steps(which, broker, driver)
        for slot in driver.slots:
            if slot.next is not Next.WAIT and not _is_over(broker, slot):
                others = driver.without(slot)
                step = f"slot {slot.task}: {slot.next.name}"
                yield step, partial(self._moved, broker, others, slot)
        if driver.to_copy:
            yield f"copy: {driver.copy_way.next.name}", lambda: self._copied(broker, driver)

    def _own_steps(self, which: int, broker: Broker, driver: Driver) -> Iterator[Step]:
        name = driver.stage.name
        match driver.stage:
            case Stage.HOLD:
                yield name, lambda: self._held(which, broker, driver)
            case Stage.LIST:
                yield name, lambda: (broker, self._will_fence(which, driver, broker.listed()))
            case Stage.FENCE | Stage.INITIALISE:
                yield f"{name} {driver.to_fence[0]}", lambda: self._initialised(broker, driver)
            case Stage.READ:
                yield name, lambda: self._read(which, broker, driver)
            case Stage.WRITE:
                write = f"{driver.writes[0].name}: {driver.way.next.name}"
                yield write, lambda: self._written(which, broker, driver)
            case Stage.READ_AGAIN:
                yield name, lambda: (broker, self._handed_over(which, broker, driver))
            case Stage.RUN:
                if not driver.is_patient:
                    alone = driver.begins_round()._replace(is_patient=True)
                    yield "LEAVE SLOTS", lambda: (broker, alone)
                counting = [each for each in driver.slots if each.has_token]
                if all(each.next is Next.WAIT for each in counting):
                    yield "READ AGAIN", lambda: self._read_again(which, broker, driver)
            case _:
                pass

    def _held(self, which: int, broker: Broker, driver: Driver) -> After:
        """The guard is taken at first, and proven later."""
        if driver.rounds == self._rounds:
            return broker, driver._replace(stage=Stage.GAVE_UP)
        if self._protocol.has_guard:
            is_first = driver.guard == 0 or self._protocol.takes_guard_again
            held = broker.proven(broker.guard if is_first else driver.guard)
            if held is None:
                return broker, driver.failed()
            broker, driver = held, driver._replace(guard=held.guard)
        driver = driver._replace(rounds=driver.rounds + 1)
        if driver.has_taken_over or not self._protocol.lists_ids:
            return broker, self._will_fence(which, driver, [])
        return broker, driver._replace(stage=Stage.LIST)

    def _will_fence(self, which: int, driver: Driver, listed: Sequence[int]) -> Driver:
        ids = sorted({*range(self._layout.tasks[which]), *listed})
        if self._layout.copies and self._protocol.fences_secondary and not driver.has_taken_over:
            ids.append(SECONDARY)
        return driver._replace(stage=Stage.FENCE, to_fence=tuple(ids), initialised=())

    def _initialised(self, broker: Broker, driver: Driver) -> After:
        first, *left = driver.to_fence
        broker, epoch = broker.initialised(first)
        driver = driver._replace(to_fence=tuple(left), initialised=(*driver.initialised, epoch))
        if not left:
            following = Stage.READ if driver.stage is Stage.FENCE else Stage.READ_AGAIN
            driver = driver._replace(stage=following, has_taken_over=True)
        return broker, driver

    def _read(self, which: int, broker: Broker, driver: Driver) -> After:
        driver = driver._replace(seen=broker.read())
        if not any(broker.copies):
            # Only what is there is removed.
            writes = (each for each in driver.writes if each is not Write.REMOVE_COPIES)
            driver = driver._replace(writes=tuple(writes))
        if self._layout.copies and Write.REMOVE not in driver.writes:
            pairs = enumerate(zip(broker.offsets, broker.copies, strict=True))
            driver = driver.with_copies(
                {each: own for each, (own, copy) in pairs if own is not None and own != copy}
            )
        if driver.writes:
            return broker, driver._replace(stage=Stage.WRITE, way=Way())
        return broker, self._planned(which, driver)

    def _planned(self, which: int, driver: Driver) -> Driver:
        """Slots are started for what is left, if something is; their ids may have to be initialised first."""
        if self._protocol.order is Order.DRIVER_INITIALISES_ASK and any(
            self._shares(which, driver.seen)
        ):
            ids = tuple(range(self._layout.tasks[which]))
            return driver._replace(stage=Stage.INITIALISE, to_fence=ids, initialised=())
        return self._started(which, driver)

    def _handed_over(self, which: int, broker: Broker, driver: Driver) -> Driver:
        """Slots are started, or another plan is made if the offsets have changed since."""
        if broker.read() != driver.seen:
            return driver._replace(stage=Stage.READ)
        return self._started(which, driver)

    def _started(self, which: int, driver: Driver) -> Driver:
        order, slots = self._protocol.order, list[Slot]()
        for task, share in enumerate(self._shares(which, driver.seen)):
            if share and order is Order.DRIVER_INITIALISES:
                slots.append(Slot(task, Next.WRITE, share, driver.initialised[task]))
            elif share and order is Order.DRIVER_INITIALISES_ASK:
                slots.append(Slot(task, Next.ASK, share, driver.initialised[task]))
            elif share:
                slots.append(Slot(task, self._following(None), share))
        driver = driver.with_slots(*slots)
        return driver._replace(stage=Stage.RUN if slots else Stage.ENDED)

    def _shares(self, which: int, seen: Offsets) -> list[tuple[tuple[int, int], ...]]:
        """For each task what it is to read: source partitions that are not read to their end, in turns."""
        starts = enumerate(offset or 0 for offset in seen)
        left = [(each, start) for each, start in starts if start < self._layout.records[each]]
        tasks, turn = self._layout.tasks[which], int(self._layout.turned[which])
        return [tuple(left[(task - turn) % tasks :: tasks]) for task in range(tasks)]

    def _read_again(self, which: int, broker: Broker, driver: Driver) -> After:
        """The slots that are initialised write what a second read leaves."""
        shares = self._shares(which, broker.read())
        waiting = [each for each in driver.slots if each.has_token]
        for each in waiting:
            driver = driver.without(each)
            if shares[each.task]:
                writing = each._replace(next=Next.WRITE, share=shares[each.task])
                driver = driver.with_slots(writing)
        return broker, _ended_if_done(driver)

    def _following(self, step: Next | None) -> Next:
        """What follows on the way to a write."""
        match self._protocol.order:
            case Order.ASK_INITIALISE:
                ways = [Next.ASK, Next.INITIALISE, Next.WRITE]
            case Order.INITIALISE:
                ways = [Next.INITIALISE, Next.WRITE]
            case Order.ALL_INITIALISE_READ_AGAIN:
                ways = [Next.INITIALISE, Next.WAIT]
            case _:
                ways = [Next.INITIALISE, Next.ASK, Next.WRITE]
        return ways[0] if step is None else ways[ways.index(step) + 1]

    def _moved(self, broker: Broker, others: Driver, slot: Slot) -> After:
        """A step of *slot*; *others* is its driver without it."""
        if slot.next is Next.WRITE:
            return self._committed(broker, others, slot)
        epoch = slot.epoch
        if slot.next is Next.INITIALISE:
            broker, epoch = broker.initialised(slot.task)
        else:
            proven = broker.proven(others.guard)
            if proven is None:
                return broker, others.failed()
            broker, others = proven, others._replace(guard=proven.guard)
        following = self._following(slot.next)
        if following is Next.ASK and not slot.has_token:
            return broker, others
        return broker, others.with_slots(slot._replace(next=following, epoch=epoch))

    def _committed(self, broker: Broker, others: Driver, slot: Slot) -> After:
        """One record and its offset, in one transaction."""
        if slot.epoch != broker.epochs[slot.task]:
            return broker, _ended_if_done(
                others._replace(must_plan=others.must_plan or slot.has_token)
            )
        (partition, record), *left = slot.share
        if record < broker.sent[partition]:
            raise BrokenPromiseError(f"record {record} of {partition} is sent twice")
        broker = broker._replace(
            sent=_replaced(broker.sent, {partition: broker.sent[partition] + 1}),
            offsets=_replaced(broker.offsets, {partition: record + 1}),
        ).checked()
        if self._layout.copies and others.stage is not Stage.FAILED:
            others = others.with_copies({partition: record + 1})
        if record + 1 < self._layout.records[partition]:
            left.insert(0, (partition, record + 1))
        if left:
            return broker, others.with_slots(slot._replace(share=tuple(left)))
        return broker, _ended_if_done(others)

    def _written(self, which: int, broker: Broker, driver: Driver) -> After:
        """A step of what the driver writes itself, under the id of task 0."""
        write, each = driver.writes[0], _id_of(driver.writes)
        if driver.way.next is not Next.WRITE:
            broker, driver, way = self._towards_write(broker, driver, driver.way, each)
            return broker, driver._replace(way=way)
        if driver.way.epoch != broker.epochs[each]:
            return broker, driver.begins_round()
        nothing = (None,) * len(broker.offsets)
        match write:
            case Write.AS_READ:
                broker = broker._replace(offsets=driver.seen)
            case Write.REMOVE_COPIES:
                broker = broker._replace(copies=nothing)
            case Write.REMOVE:
                broker = broker._replace(offsets=nothing, sent=(0,) * len(nothing))
        driver = driver._replace(writes=driver.writes[1:], way=Way())
        if write is Write.AS_READ:
            driver = self._planned(which, driver)
        elif write is Write.REMOVE:
            driver = driver._replace(stage=Stage.READ)
        return broker.checked(), driver

    def _copied(self, broker: Broker, driver: Driver) -> After:
        """A step of the thread that copies. Its producer stays."""
        if driver.copy_way.next is not Next.WRITE:
            broker, driver, way = self._towards_write(broker, driver, driver.copy_way, SECONDARY)
            return broker, driver._replace(copy_way=way)
        if driver.copy_way.epoch != broker.epochs[SECONDARY]:
            return broker, driver._replace(copy_way=Way())
        copies = _replaced(broker.copies, dict(driver.to_copy))
        return broker._replace(copies=copies).checked(), driver._replace(to_copy=())

    def _towards_write(
        self, broker: Broker, driver: Driver, way: Way, each: int
    ) -> tuple[Broker, Driver, Way]:
        if way.next is Next.INITIALISE:
            broker, epoch = broker.initialised(each)
            following = Next.ASK if self._protocol.proves_own_writes else Next.WRITE
            return broker, driver, Way(following, epoch)
        proven = broker.proven(driver.guard)
        if proven is None:
            return broker, driver.failed(), Way()
        return proven, driver._replace(guard=proven.guard), way._replace(next=Next.WRITE)


def _is_over(broker: Broker, slot: Slot) -> bool:
    """Whether *slot* is fenced, and no one waits to hear of it."""
    is_fenced = slot.next is Next.WRITE and slot.epoch != broker.epochs[slot.task]
    return is_fenced and not slot.has_token


def _after(drivers: tuple[Driver, Driver], which: int, take: Callable[[], After]) -> State:
    broker, driver = take()
    first, second = drivers
    return State(broker, (first, driver) if which else (driver, second))


def _replaced(values: tuple[_Value, ...], news: dict[int, _Value]) -> tuple[_Value, ...]:
    return tuple(news.get(each, value) for each, value in enumerate(values))


def _id_of(writes: tuple[Write, ...]) -> int:
    return SECONDARY if writes[:1] == (Write.REMOVE_COPIES,) else 0


def _ended_if_done(driver: Driver) -> Driver:
    """When all slots have ended, offsets are read; fencing comes first if one of them was fenced."""
    if driver.stage is not Stage.RUN or driver.has_tokens():
        return driver
    return driver.begins_round() if driver.must_plan else driver._replace(stage=Stage.READ)


@dataclass(frozen=True, slots=True)
class Explored:
    """What was found: the states in which nothing can happen any more, and whether something can happen forever."""

    ends: list[State]
    has_cycle: bool


def explored(scene: Scene) -> Explored:
    """All that *scene* can come to; raises :class:`BrokenPromiseError` with the steps to the first state that is wrong."""
    start = scene.start()
    first = scene.essence(start)
    came: dict[Hashable, tuple[Hashable, str] | None] = {first: None}
    following: dict[Hashable, list[Hashable]] = {}
    left, ends = [(first, start)], list[State]()
    while left:
        essence, state = left.pop()
        reached = following[essence] = []
        for name, step in scene.steps(state):
            try:
                after = step()
            except BrokenPromiseError as error:
                raise BrokenPromiseError(f"{error}: {_path(came, essence)}{name}") from error
            reached.append(scene.essence(after))
            if reached[-1] not in came:
                came[reached[-1]] = essence, name
                left.append((reached[-1], after))
        if not reached:
            ends.append(state)
    return Explored(ends, _has_cycle(following))


def _path(came: dict[Hashable, tuple[Hashable, str] | None], essence: Hashable) -> str:
    names, step = list[str](), came[essence]
    while step is not None:
        names.insert(0, f"{step[1]}, ")
        step = came[step[0]]
    return "".join(names)


def _has_cycle(following: dict[Hashable, list[Hashable]]) -> bool:
    """Whether one state leads back to itself."""
    before = defaultdict[Hashable, int](int)
    for reached in following.values():
        for each in reached:
            before[each] += 1
    free = [each for each in following if not before[each]]
    count = 0
    while free:
        count += 1
        for each in following[free.pop()]:
            before[each] -= 1
            if not before[each]:
                free.append(each)
    return count < len(following)
