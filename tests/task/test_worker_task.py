"""What a slot asks the driver before it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from doubles.copied_positions import GROUP, encoded
from doubles.memory_sender import MemorySender
from doubles.puppets import Puppet, PuppetTask, numbered, puppet
from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.connect.record import BytesRecord
from headrace.connect.task import SourceTask
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import EncodedRecords
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.kafka.wire_sender import make_wire_sender
from headrace.offsets.target import OffsetTopic
from headrace.task.connector_spec import ConnectorSpec, Delivery, PluginChoice, SenderKind
from headrace.task.slot_report import Outcome, Progress
from headrace.task.slot_work import SlotWork
from headrace.task.worker_task import WorkerTask, sender_maker
from task.loop import HeldLease

STRING = PluginChoice(class_name="string")
BYTES = PluginChoice(class_name="bytes")


@dataclass
class Driver:
    """Answers as the test says, and notes what it was asked; stands where a ``ChannelClient`` stands."""

    answer: Callable[[], bool]
    asked: list[str] = field(default_factory=list)

    def ask(self, verb: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """The answer to *verb*."""
        self.asked.append(verb)
        return {"valid": self.answer()}


class WatchedSender(MemorySender):
    """Remembers whether it owns its transactional id, and whether it ever began a transaction."""

    opened = False
    begun = False

    def open(self) -> None:
        """Note it."""
        super().open()
        self.opened = True

    def begin(self) -> None:
        """Note it."""
        super().begin()
        self.begun = True


class Slot:
    """One slot with a record to send, whose token is valid as *answer* says once its sender is open."""

    def __init__(self, answer: Callable[[], bool]) -> None:
        polls = iter([numbered("t", 0, 1), None])
        puppet("c", Puppet(poll=lambda _: next(polls)))
        self.sender = sender = WatchedSender()
        self.driver = Driver(lambda: answer() if sender.opened else True)
        self.run = WorkerTask(
            WORK,
            self.driver,  # type: ignore[arg-type]
            HeldLease(),  # type: ignore[arg-type]
            Progress(),
            make_sender=lambda *_, **__: sender,
        )


WORK = SlotWork(
    spec=ConnectorSpec(
        name="c",
        props={"name": "c"},
        max_tasks=1,
        delivery=Delivery.EXACTLY_ONCE,
        producer={"bootstrap.servers": "nowhere:1"},
        offsets=OffsetTopic(name="offsets"),
        key_converter=STRING,
        value_converter=STRING,
        header_converter=PluginChoice(class_name="simple"),
    ),
    task=0,
    lease_seconds=10.0,
    grace_seconds=5.0,
    transaction_seconds=60.0,
    task_class="doubles.puppets:PuppetTask",
    config={"name": "c"},
    planned=True,
    splits=(),
    transactional_id="g-c-0",
)


def with_settings(work: SlotWork, **settings: Any) -> SlotWork:  # noqa: ANN401 (as the spec has them)
    """*work* for a connector with other *settings*."""
    return replace(work, spec=replace(work.spec, **settings))


def test_a_slot_whose_token_counts_writes() -> None:
    """Once it has made sure of it."""
    slot = Slot(lambda: True)

    assert Outcome.FINISHED is slot.run.run()
    assert slot.run.close()
    assert [("t", None, b"0")] == slot.sender.committed
    assert ["valid"] == slot.driver.asked


def test_a_connector_says_what_sends_its_records() -> None:
    """The client library's producer, or our own: the choice reaches the slot."""
    work = with_settings(WORK, sender=SenderKind.WIRE)
    maker = sender_maker(SlotWork.from_message(json.loads(json.dumps(work.as_message()))))

    assert make_sender is sender_maker(WORK)
    assert isinstance(maker, partial)
    assert (make_wire_sender, {"identity": None}) == (maker.func, maker.keywords)


class CopyingTask(PuppetTask):
    """One that wants to know where its records have landed."""

    def records_of_commit(self, copied: Sequence[CopiedRun]) -> Iterable[BytesRecord]:
        """None are added."""
        return ()


class OriginsSender(WatchedSender):
    """Notes whether records know their source offsets."""

    known: bool | None = None

    def send(self, records: EncodedRecords) -> None:
        """Note it."""
        self.known = records.origin is not None
        super().send(records)


@pytest.mark.parametrize("asks", [True, False])
def test_records_know_their_source_offsets_only_for_a_task_that_asks_where_they_landed(
    *, asks: bool
) -> None:
    """For others it would take memory until the commit, and a sender takes it for the sign of a copy."""
    task_class = f"{__name__}:CopyingTask" if asks else WORK.task_class
    polls = iter([numbered("t", 0, 1), None])
    puppet("c", Puppet(poll=lambda _: next(polls)))
    sender = OriginsSender()
    run = WorkerTask(
        replace(WORK, task_class=task_class),
        Driver(lambda: True),  # type: ignore[arg-type]
        HeldLease(),  # type: ignore[arg-type]
        Progress(),
        make_sender=lambda *_, **__: sender,
    )
    run.run()

    assert asks is sender.known


def test_the_wire_s_sender_has_the_identity_that_the_driver_hands_over() -> None:
    """As it came over the channel."""
    given = replace(with_settings(WORK, offsets=GROUP), identity=ProducerIdentity(7, 1))
    maker = sender_maker(SlotWork.from_message(json.loads(json.dumps(given.as_message()))))

    assert isinstance(maker, partial)
    assert (make_wire_sender, {"identity": ProducerIdentity(7, 1)}) == (maker.func, maker.keywords)


@pytest.mark.parametrize(("converter", "takes"), [(BYTES, True), (STRING, False)])
def test_a_slot_s_task_knows_whether_it_may_pass_batches_on(
    converter: PluginChoice, *, takes: bool
) -> None:
    """And what it passes on is committed with its offset in the group."""
    seen = list[bool]()
    sender = WatchedSender()

    def poll(task: SourceTask) -> EncodedBatches | None:
        seen.append(task.context.takes_encoded)
        return encoded(3) if takes and len(seen) == 1 else None

    puppet("c", Puppet(poll=poll))
    run = WorkerTask(
        with_settings(WORK, offsets=GROUP, key_converter=converter, value_converter=converter),
        Driver(lambda: True),  # type: ignore[arg-type]
        HeldLease(),  # type: ignore[arg-type]
        Progress(),
        make_sender=lambda *_, **__: sender,
    )

    assert Outcome.FINISHED is run.run()
    assert run.close()
    assert {takes} == set(seen)
    committed = [each.offset for each in sender.groups.get("copies", {}).values()]
    assert ([3] if takes else []) == committed


def silence() -> bool:
    """No answer."""
    raise RetriableError("no one there")


@pytest.mark.parametrize(
    ("answer", "error"), [(lambda: False, StaleTokenError), (silence, RetriableError)]
)
def test_a_slot_that_was_held_before_its_producer_asks_again_before_it_writes(
    answer: Callable[[], bool], error: type[Exception]
) -> None:
    """It may have fenced its successor by opening; its lease may not have noticed anything yet."""
    slot = Slot(answer)

    with pytest.raises(error):
        slot.run.run()

    assert slot.run.close()
    assert slot.sender.opened
    assert not slot.sender.begun
    assert slot.sender.closed
