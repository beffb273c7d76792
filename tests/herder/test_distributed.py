"""Workers of one group on a broker: who runs what, and who may change it. Their runs are doubles."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.broker import Broker
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.herder.answers import Health, TargetState
from headrace.herder.coordination import HerderParts
from headrace.herder.distributed import Distributed
from headrace.herder.errors import ConflictError, ElsewhereError, NotFoundError, ServerError
from headrace.herder.group import GroupSettings
from headrace.herder.group_protocol import (
    Assignment,
    MemberMetadata,
    ProtocolVersion,
    encoded_assignment,
    encoded_metadata,
)
from headrace.herder.internal_requests import InternalRequest
from headrace.herder.requests import OffsetChange, RestartRequest
from headrace.herder.worker_herder import WorkerHerder
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.membership import GroupMembership, GroupRole, GroupTiming, JoinedMember
from headrace.kafka.wire.settings import wire_settings
from headrace.storage.kafka import KafkaStorage, StorageClients, StorageTopics
from headrace.storage.protocols import StoredConnector
from herder.stage import Stage, config, request
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TIMING = GroupTiming(session=6.0, heartbeat=0.5, rebalance=20.0)


@dataclass
class Peers:
    """Has each worker ask the herder of the other one, as over HTTP."""

    herders: dict[str, WorkerHerder] = field(default_factory=dict[str, WorkerHerder])

    def ask(self, url: str, request: InternalRequest) -> None:
        """Call what the request's path stands for."""
        herder, target = self.herders[url], urlsplit(request.path)
        _, _, name, what = map(unquote, target.path.split("/"))
        if what == "tasks":
            made_from = parse_qs(target.query)["config"][0]
            herder.put_tasks(name, json.loads(request.body), made_from=made_from)
        elif what == "fence":
            herder.put_task_count(name, json.loads(request.body)["task-count"])
        else:
            assert what == "quiet"
            herder.await_quiet(name)

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """All are trusted."""

    def renew_key(self) -> None:
        """There is none."""


@dataclass
class Group:
    """The topics of a group, and its members; all are closed with the test."""

    bootstrap: str
    opened: ExitStack
    name: str = field(default_factory=lambda: f"group-{uuid4().hex[:8]}")
    timing: GroupTiming = TIMING
    max_delay_ms: int = 0
    protocol: ProtocolVersion = ProtocolVersion.SESSIONED
    peers: Peers = field(default_factory=Peers)

    def __post_init__(self) -> None:
        self.topics = StorageTopics(*(f"{self.name}-{each}" for each in StorageTopics._fields))
        self._properties = {"bootstrap.servers": self.bootstrap}
        self._client = client_config(self._properties)
        admin = KafkaAdmin(self._client)
        for each in self.topics:
            admin.ensure_compacted_topic(
                CompactedTopic(name=each, partitions=1, replication=1), Deadline.after(20)
            )

    def storage(
        self,
        may_lead: Callable[[], None] = lambda: None,
        generation: Callable[[], int] = lambda: 0,
        *,
        is_atomic: bool = False,
    ) -> KafkaStorage:
        """The group's topics, read to their ends; one that is atomic takes the writing from any other."""
        writer = f"connect-cluster-{self.name}" if is_atomic else None
        leader = producer_config(self._properties, transactional_id=writer)
        storage = KafkaStorage(
            self.topics,
            StorageClients(
                reader=self._client, leader=leader, worker=producer_config(self._properties)
            ),
            may_lead=may_lead,
            generation=generation,
        )
        self.opened.enter_context(closing(storage))
        storage.refresh()
        return storage

    def member(self, role: GroupRole, wake: Callable[[], None]) -> GroupMembership:
        """A member that has not joined."""
        return GroupMembership(
            wire_settings(self._client.settings), self.name, role, timing=self.timing, wake=wake
        )

    def worker(self, name: str) -> Worker:
        """A worker that has been started."""
        worker = Worker(self, name)
        self.peers.herders[f"http://{name}/"] = worker.herder
        self.opened.callback(worker.close)
        worker.herder.start()
        worker.herder.ready()
        return worker


class Worker:
    """A herder of the group, whose runs are doubles."""

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name
        self.coordination: Distributed | None = None
        self.membership: GroupMembership | None = None
        self.storage = group.storage(self._require_leader, self._generation, is_atomic=True)
        self.stage = Stage(
            configs=self.storage.configs,
            statuses=self.storage.statuses,
            topics=self.storage.topics,
            grace=5.0,
            worker_id=name,
        )
        self.stage.kafka.set()
        self.herder: WorkerHerder = self.stage.new_herder(self._coordinate)

    def close(self) -> None:
        """Leave the group."""
        self.herder.close()

    def runs(self) -> list[str]:
        """The connectors that run here."""
        with self.stage.guard:
            return sorted(each.spec.name for each in self.stage.running)

    def _coordinate(self, parts: HerderParts) -> Distributed:
        settings = GroupSettings(
            group=self.group.name,
            url=f"http://{self.name}/",
            slots=4,
            max_delay_ms=self.group.max_delay_ms,
            session=2.0,
            protocol=self.group.protocol,
        )
        self.queue = parts.queue
        self.coordination = Distributed(
            parts, settings, lambda: self.storage, self._member, peers=self.group.peers
        )
        return self.coordination

    def _member(self, role: GroupRole, wake: Callable[[], None]) -> GroupMembership:
        self.membership = self.group.member(role, wake)
        return self.membership

    def _require_leader(self) -> None:
        assert self.coordination is not None
        self.coordination.require_writer()

    def _generation(self) -> int:
        return 0 if self.coordination is None else self.coordination.generation


@pytest.fixture
def group(broker: Broker) -> Iterator[Group]:
    """A group without members."""
    with ExitStack() as opened:
        yield Group(broker.bootstrap, opened)


def test_a_worker_alone_runs_what_it_is_asked_for(group: Group) -> None:
    """From its creation to its end, over the topics."""
    worker = group.worker("a")
    until(lambda: worker.herder.is_open)

    worker.herder.create(request())
    until(lambda: worker.stage.states() == {None: "RUNNING", 0: "RUNNING", 1: "RUNNING"})
    assert 2 == len(worker.herder.tasks("c"))
    worker.herder.pause("c")
    until(lambda: worker.stage.states() == {None: "PAUSED", 0: "PAUSED", 1: "PAUSED"})
    worker.herder.resume("c")
    until(lambda: worker.runs() == ["c"])
    worker.herder.restart(RestartRequest(name="c", include_tasks=True))
    until(lambda: worker.stage.states() == {None: "RUNNING", 0: "RUNNING", 1: "RUNNING"})
    worker.herder.delete("c")

    assert [] == worker.runs()
    assert [] == list(worker.herder.connectors())
    worker.herder.create(request())
    until(lambda: worker.runs() == ["c"])


def test_a_config_topic_that_was_made_anew_is_not_one_without_connectors(group: Group) -> None:
    """What runs goes on, nothing is changed, and the worker's health says why."""
    worker = group.worker("a")
    until(lambda: worker.herder.is_open)
    worker.herder.create(request())
    until(lambda: worker.stage.states() == {None: "RUNNING", 0: "RUNNING", 1: "RUNNING"})
    admin, topic = AdminClient({"bootstrap.servers": group.bootstrap}), group.topics.configs
    admin.delete_topics([topic])[topic].result(20)
    until(lambda: topic not in admin.list_topics(timeout=10).topics)
    with pytest.raises(ConnectError, match=topic):
        # The broker would make the topic for it, in which records are deleted.
        worker.storage.put_level("org.a", "DEBUG")
    assert topic not in admin.list_topics(timeout=10).topics
    made = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([made])[topic].result(20)

    until(lambda: "is not the one that was read before" in worker.herder.health().message)
    assert Health.UNHEALTHY is worker.herder.health().status
    with pytest.raises(ServerError, match="Nothing is changed while the group's topics"):
        worker.herder.delete("c")
    assert ["c"] == worker.runs() == list(worker.herder.connectors())


def test_connectors_are_divided_and_taken_over(group: Group) -> None:
    """Who runs one has its tasks stored by the leader, and only the leader changes it."""
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    first.herder.create(request())
    first.herder.create(request("e"))
    first.herder.create(replace(request("d"), initial_state=TargetState.PAUSED))
    until(lambda: first.stage.states("d").get(None) == "PAUSED" and first.runs() == ["c", "e"])
    second = group.worker("b")
    until(lambda: len(first.runs() + second.runs()) == 2 and second.runs() != [])

    assert ["c", "d", "e"] == list(second.herder.connectors())
    with pytest.raises(ElsewhereError, match="Only the leader of the group") as refused:
        second.herder.pause("c")
    assert "http://a/" == refused.value.url
    with pytest.raises(RetriableError, match="does not lead"):
        second.storage.configs.delete_connector("c")
    [theirs] = second.runs()
    with pytest.raises(ElsewhereError, match=f"runs connector {theirs}") as refused:
        first.herder.restart(RestartRequest(name=theirs))
    assert "http://b/" == refused.value.url
    before = second.stage.the_run(theirs)
    second.herder.restart(RestartRequest(name=theirs))
    until(lambda: before is not second.stage.the_run(theirs))
    first.herder.put_config(theirs, config(name=theirs, **{"tasks.max": "3"}))
    until(lambda: len(second.herder.tasks(theirs)) == 3)
    until(lambda: len(second.stage.states(theirs)) == 4)
    first.close()
    until(lambda: second.runs() == ["c", "e"])
    until(lambda: second.stage.states("d").get(None) == "PAUSED")
    second.herder.stop("c")
    until(lambda: second.stage.states() == {None: "STOPPED"})


def test_the_brokers_tell_what_the_leader_would(group: Group) -> None:
    """Which a follower says while the leader does not answer, and of that one that it does not."""
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    first.herder.create(request())
    second = group.worker("b")
    until(lambda: second.herder.is_open)

    def is_told() -> bool:
        # Not while the work is being divided.
        with suppress(ConflictError):
            return first.herder.workers() == second.herder.known_workers()
        return False

    until(is_told)
    states = [each.state for each in second.herder.known_workers(unreachable="http://a/")]
    assert ["UNREACHABLE", "ACTIVE"] == states


def test_a_configuration_that_is_put_again_restarts_its_connector(group: Group) -> None:
    """Wherever it runs, as in Kafka Connect; a target state that it has already does not."""
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    for name in "cd":
        first.herder.create(request(name))
    second = group.worker("b")
    until(lambda: len(first.runs()) == len(second.runs()) == 1)

    for worker, [name] in [(each, each.runs()) for each in (first, second)]:
        before = worker.stage.the_run(name)
        first.herder.resume(name)
        first.herder.put_config(name, first.herder.info(name).config)
        until(lambda: before not in worker.stage.running and name in worker.runs())  # noqa: B023 (called at once)
        # Once, and at the next record there is nothing to do.
        after = worker.stage.the_run(name)
        first.herder.create(request(f"later-than-{name}"))
        until(lambda: f"later-than-{name}" in first.runs() + second.runs())  # noqa: B023
        assert not after.asked.is_set()


def test_offsets_are_changed_when_nothing_runs_on_any_worker(group: Group) -> None:
    """The leader waits for the one that has the connector."""
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    for name in "cde":
        first.herder.create(request(name))
    second = group.worker("b")
    until(lambda: len(first.runs()) + len(second.runs()) == 3 and second.runs() != [])
    [name, *_] = second.runs()
    second.stage.holds = True
    run = second.stage.the_run(name)

    first.herder.stop(name)
    with ThreadPoolExecutor() as threads:
        altered = threads.submit(
            first.herder.alter_offsets, name, [OffsetChange(partition={}, offset={})]
        )
        until(run.asked.is_set)
        assert not altered.done()
        assert [] == first.stage.changes.done
        second.stage.holds = False
        run.end()
        altered.result(20)
    assert [("altered", name)] == first.stage.changes.done

    first.herder.resume(name)
    until(lambda: name in second.runs())
    first.herder.delete(name)
    assert name not in second.runs()
    first.herder.create(request(name))
    until(lambda: name in first.runs() + second.runs())


def test_a_worker_hands_over_before_it_leaves(group: Group) -> None:
    """Nothing waits for it to come back, and what others run goes on (KIP-995)."""
    group.max_delay_ms = 300_000
    workers = [group.worker("a")]
    until(lambda: workers[0].herder.is_open)
    for name in "cdefgh":
        workers[0].herder.create(request(name))
    workers += [group.worker("b"), group.worker("x")]
    until(lambda: all(len(each.runs()) == 2 for each in workers))

    for leaving in (workers[1], workers[0]):
        staying = [each for each in workers if each is not leaving]
        kept = [(each, each.stage.the_run(name)) for each in staying for name in each.runs()]
        leaving.close()
        workers = staying
        until(lambda: len([name for each in workers for name in each.runs()]) == 6)  # noqa: B023 (called at once)
        assert [] == [each for each, run in kept if run.asked.is_set()]


def test_a_worker_that_knows_only_eager_has_all_stop_before_work_is_dealt(group: Group) -> None:
    """As in Kafka Connect; nothing runs on two workers, nothing waits for who is gone, and without that worker all is as before."""
    group.max_delay_ms = 300_000
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    for name in "cdef":
        first.herder.create(request(name))
    until(lambda: first.runs() == ["c", "d", "e", "f"])
    before = first.stage.the_run("c")
    group.protocol = ProtocolVersion.DEFAULT
    eager = group.worker("b")

    until(lambda: len(first.runs()) == len(eager.runs()) == 2)
    assert before.asked.is_set()
    assert ["c", "d", "e", "f"] == sorted(first.runs() + eager.runs())
    first.herder.create(request("g"))
    until(lambda: sorted(first.runs() + eager.runs()) == ["c", "d", "e", "f", "g"])
    eager.close()
    until(lambda: first.runs() == ["c", "d", "e", "f", "g"])
    kept = [first.stage.the_run(name) for name in "cdefg"]
    group.protocol = ProtocolVersion.SESSIONED
    second = group.worker("x")
    until(lambda: len(first.runs()) == 3 and len(second.runs()) == 2)
    assert 2 == len([each for each in kept if each.asked.is_set()])


def test_a_worker_can_stay_without_connectors(group: Group) -> None:
    """For maintenance of its machine, say; it takes some again when it is told."""
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    for name in "cd":
        first.herder.create(request(name))
    second = group.worker("b")
    until(lambda: len(first.runs()) == len(second.runs()) == 1)

    second.herder.relinquish("b", stay=True)
    until(lambda: first.runs() == ["c", "d"])
    assert [] == second.runs()
    assert [("a", "ACTIVE", ["c", "d"]), ("b", "LEAVING", [])] == [
        (each.id, each.state.value, list(each.connectors)) for each in first.herder.workers()
    ]
    with pytest.raises(ElsewhereError, match="Only worker b itself"):
        first.herder.rejoin("b")
    with pytest.raises(NotFoundError, match="no worker x, only a, b"):
        first.herder.relinquish("x")
    second.herder.rejoin("b")
    until(lambda: len(first.runs()) == len(second.runs()) == 1)


def test_what_a_lost_worker_had_waits_until_it_is_back(group: Group) -> None:
    """It has another id by then, and the same URL; the delay need not be over."""
    group.max_delay_ms = 300_000
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    for name in "cd":
        first.herder.create(request(name))
    second = group.worker("b")
    until(lambda: len(first.runs()) == len(second.runs()) == 1)
    [theirs] = second.runs()
    before, membership = second.stage.the_run(theirs), second.membership
    assert membership is not None
    membership.leave("lost", 5.0)

    until(before.asked.is_set)
    until(lambda: second.runs() == [theirs])
    assert before is not second.stage.the_run(theirs)
    assert 1 == len(first.runs())


def test_what_others_write_is_followed(group: Group) -> None:
    """Another program with the right to write the topic, such as a worker that led before."""
    worker = group.worker("a")
    until(lambda: worker.herder.is_open)
    worker.herder.create(request())
    until(lambda: worker.runs() == ["c"])
    before = worker.stage.the_run()
    other = group.storage()
    config = {**worker.herder.info("c").config, "tasks.max": "1"}

    other.configs.put_connector(StoredConnector(name="c", config=config))
    until(lambda: worker.stage.states() == {None: "RUNNING", 0: "RUNNING"})
    assert before is not worker.stage.the_run()
    other.configs.put_connector(StoredConnector(name="c", config=config, target_state="STOPPED"))
    until(lambda: worker.stage.states() == {None: "STOPPED"})
    other.configs.put_connector(StoredConnector(name="new", config={**config, "name": "new"}))
    until(lambda: worker.runs() == ["new"])
    other.configs.delete_connector("new")
    until(lambda: worker.runs() == [])


def test_states_that_no_connector_has_are_forgotten_by_who_leads(group: Group) -> None:
    """They are of connectors that were deleted while no one ran."""
    storage = group.storage()
    worker = group.worker("a")
    until(lambda: worker.herder.is_open)
    worker.herder.create(request("gone"))
    until(lambda: worker.runs() == ["gone"])
    worker.close()
    storage.configs.delete_connector("gone")

    group.worker("b")
    until(lambda: (storage.refresh(), list(storage.statuses.connectors()))[1] == [])


def test_a_worker_whose_herder_is_stuck_is_removed_and_joins_again(group: Group) -> None:
    """Another one can go on; its own connectors end once it finds out."""
    group.timing = replace(TIMING, rebalance=5.0)
    worker = group.worker("a")
    until(lambda: worker.herder.is_open)
    worker.herder.create(request())
    until(lambda: worker.runs() == ["c"])
    before, membership = worker.stage.the_run(), worker.membership
    assert membership is not None
    stuck = threading.Event()

    def be_stuck() -> None:
        stuck.wait(60)

    worker.queue.post(be_stuck)

    until(lambda: membership.is_removed, seconds=30)
    assert not membership.holds()
    assert not before.asked.is_set()
    stuck.set()
    until(before.asked.is_set)
    until(lambda: worker.runs() == ["c"] and before is not worker.stage.the_run())
    assert membership.holds()


def test_a_url_that_another_worker_has_is_refused(group: Group) -> None:
    """Requests for one would reach the other."""
    first = group.worker("a")
    until(lambda: first.herder.is_open)
    second = group.worker("a")

    until(lambda: second.herder.failure is not None)
    assert "Another worker of it is at http://a/, too" in str(second.herder.failure)
    assert first.herder.failure is None


def test_workers_of_kafka_connect_are_refused(group: Group) -> None:
    """They would be given nothing, and could not be understood in everything."""
    with ExitStack() as opened:
        java = JavaWorker()
        member = group.member(java, lambda: None)
        opened.callback(member.close)
        until(lambda: member.join(1.0) is not None)

        worker = Worker(group, "a")
        opened.callback(worker.close)
        worker.herder.start()
        worker.herder.ready()

        def both() -> bool:
            member.join(0.1)
            member.keep_alive()
            return worker.herder.failure is not None

        until(both)
    assert isinstance(worker.herder.failure, TaskFailedError)
    assert "workers of Kafka Connect (http://java/)" in str(worker.herder.failure)


class JavaWorker:
    """Says what Kafka Connect's workers say, and leads as they do, with nothing to be done."""

    def protocols(self) -> list[tuple[str, bytes]]:
        """Without headrace's own block."""
        metadata = MemberMetadata(url="http://java/", config_offset=0)
        return [(ProtocolVersion.SESSIONED.protocol, encoded_metadata(metadata))]

    def assign(
        self, generation: int, protocol: str, leader: str, members: Sequence[JoinedMember]
    ) -> dict[str, bytes]:
        """Nothing."""
        empty = Assignment(leader=leader, leader_url="http://java/")
        return {each.member_id: encoded_assignment(empty) for each in members}
