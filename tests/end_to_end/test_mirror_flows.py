"""`headrace mirror` between two real brokers: both ways in one process, and how far each flow is."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from confluent_kafka.admin import NewTopic

from doubles.thread_engine import ThreadEngine
from end_to_end.mirrored import committed
from headrace.broker import Broker
from headrace.cli.mirror_flows import FlowWorker, MirrorFile, flow_workers
from headrace.cli.mirror_offsets import options_of
from headrace.cli.mirror_process import RunningFlow, opened_flows, run_flows
from headrace.cli.mirror_status import FlowWatcher, SeenFlow
from headrace.connect.partition import SourcePartition
from headrace.kafka.client_config import client_config, producer_config
from headrace.mirror.dedicated import SOURCE_CONNECTOR
from headrace.observe.event_log import EventLog
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.runtime.engine import DataPlane
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(300)]

_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class CountingEngine(ThreadEngine):
    """Knows how many slots have run at once, at most."""

    def __init__(self, *, slots: int) -> None:
        super().__init__(slots=slots)
        self.most = 0
        self.is_closed = False
        self._now = 0
        self._lock = threading.Lock()

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Count them."""
        with self._lock:
            self._now += len(tickets)
            self.most = max(self.most, self._now)
        try:
            super().run(tickets, sql_stage)
        finally:
            with self._lock:
                self._now -= len(tickets)

    def close(self) -> None:
        """Remember."""
        self.is_closed = True


class Flows:
    """A file with two clusters, ``x`` and ``y``, and flows both ways; other tests have other aliases."""

    def __init__(self, x: Topics, y: Topics, folder: Path) -> None:
        self.topics = {"x": x, "y": y}
        self.folder = folder
        self.alias = {each: f"{each}{uuid4().hex[:6]}" for each in "xy"}
        self.path = folder / "mm2.properties"
        one, other = self.alias.values()
        self.names = {"x": f"{one}->{other}", "y": f"{other}->{one}"}
        self.props = {
            "clusters": f"{one}, {other}",
            f"{one}.bootstrap.servers": x.bootstrap,
            f"{other}.bootstrap.servers": y.bootstrap,
            f"{one}->{other}.enabled": "true",
            f"{other}->{one}.enabled": "true",
            # Remote topics, too, but for those that would come back.
            "topics": f".*({x.prefix}|{y.prefix})-.*",
            # Those of other tests.
            "heartbeats.replication.enabled": "false",
            "replication.factor": "1",
            "mirror.offset.ranges.topic.replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "partition.discovery.interval.ms": "300",
            "sync.topic.acls.enabled": "false",
            "headrace.lease.ms": "5000",
            "headrace.idle.poll.ms": "200",
            "spark.driver.extraJavaOptions": _QUICK_JVM,
        }

    def set(self, **settings: str) -> None:
        """Settings of both flows, whose dots are underscores here."""
        self.props |= {key.replace("_", "."): value for key, value in settings.items()}

    def listening(self, side: str) -> str:
        """The URL at which the flow from *side* is to answer requests."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.props[f"{self.names[side]}.listeners"] = url
        return url

    def remote(self, side: str, topic: str) -> str:
        """What a topic of the cluster *side* is called at the other one."""
        return f"{self.alias[side]}.{topic}"

    def written(self) -> Path:
        """The file."""
        self.path.write_text("".join(f"{key} = {value}\n" for key, value in self.props.items()))
        return self.path

    def workers(self, *, once: bool = False) -> Sequence[FlowWorker]:
        """The flows of the file."""
        file = MirrorFile.read(self.written())
        return flow_workers(file, file.config.flows, once=once)

    @contextmanager
    def opened(self, engine: ThreadEngine, *, once: bool = False) -> Iterator[list[RunningFlow]]:
        """The flows, not yet started, on *engine*."""
        plane = DataPlane.shared(engine)
        with ExitStack() as opened:
            flows = opened_flows(self.workers(once=once), self.folder, opened, once=once)
            yield [
                RunningFlow(
                    each,
                    plane,
                    EventLog(),
                    once=once,
                    retries_start=not once,
                    command_options=self.options(each.worker),
                )
                for each in flows
            ]

    def options(self, flow: FlowWorker) -> str:
        """Those by which commands reach a flow without listeners."""
        return options_of(self.path, flow, self.folder, answers=False)

    def seen(self) -> dict[str, SeenFlow]:
        """How far they are."""
        with FlowWatcher(self.workers()) as watcher:
            return {each.status.flow: each for each in watcher.seen(0)}

    def errors(self, side: str) -> Mapping[str, str] | None:
        """What the worker of that flow says has failed."""
        answer = self.seen()[self.names[side]].worker
        return None if answer is None else answer.errors

    def values(self, side: str, topic: str) -> list[str]:
        """What can be read there."""
        found = committed(self.topics[side].bootstrap, [topic])[topic]
        return sorted((each.value or b"").decode() for part in found.values() for each in part)

    def has(self, side: str, topic: str) -> bool:
        """Whether there is such a topic."""
        return topic in self.topics[side].admin.list_topics(timeout=10).topics


@pytest.fixture
def flows(bootstrap: str, broker: Broker, tmp_path: Path) -> Flows:
    """Between the shared broker and the mortal one."""
    return Flows(Topics(bootstrap), Topics(broker.bootstrap), tmp_path)


def headrace(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command."""
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


@pytest.mark.spark
def test_what_is_there_is_copied_both_ways_and_nothing_comes_back(flows: Flows) -> None:
    """By the command, on one Spark session; and what has come since by another run, and nothing twice."""
    orders = flows.topics["x"].create("orders", 2)
    bills = flows.topics["y"].create("bills")
    expected = flows.topics["x"].write(orders, 20) + flows.topics["x"].write(orders, 20, 1)
    others = flows.topics["y"].write(bills, 7)
    # Each slot has a Python process, whose start is most of this test's time.
    flows.set(headrace_slots="2")
    file = flows.written()

    ended = headrace("mirror", "--once", file, "--state", flows.folder)

    assert 0 == ended.returncode, ended.stderr[-4000:]
    assert sorted(expected) == flows.values("y", flows.remote("x", orders))
    assert sorted(others) == flows.values("x", flows.remote("y", bills))
    assert [0, 0] == [each.lag for each in flows.seen().values()]
    expected += flows.topics["x"].write(orders, 3, 1)
    shown = headrace("mirror", "status", file)
    assert 0 == shown.returncode
    assert f"{flows.names['x']}: lag 3, " in shown.stdout

    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)

    assert sorted(expected) == flows.values("y", flows.remote("x", orders))
    assert sorted(others) == flows.values("x", flows.remote("y", bills))
    assert [0, 0] == [each.lag for each in flows.seen().values()]
    back = flows.remote("y", flows.remote("x", orders))
    assert not flows.has("x", back)
    assert not flows.has("y", flows.remote("x", flows.remote("y", bills)))


def test_before_a_takeover_the_status_has_mirrormakers_positions(flows: Flows) -> None:
    """They are in its topic on the target, until the first start moves them into the group."""
    topic = flows.topics["x"].create("orders")
    flows.topics["x"].write(topic, 8)
    target, offsets_topic = flows.topics["y"], f"mm2-offsets.{flows.alias['x']}.internal"
    wanted = NewTopic(offsets_topic, 1, 1, config={"cleanup.policy": "compact"})
    remote = flows.remote("x", topic)
    for made in target.admin.create_topics([wanted, NewTopic(remote, 1, 1)]).values():
        made.result(30)
    until(lambda: flows.has("y", offsets_topic) and flows.has("y", remote))
    connection = {"bootstrap.servers": target.bootstrap}
    store = KafkaOffsetStore(
        offsets_topic, client=client_config(connection), producer=producer_config(connection)
    )
    where = {"cluster": flows.alias["x"], "topic": topic, "partition": 0}
    store.put(SOURCE_CONNECTOR, {SourcePartition(where): {"offset": 4}})
    store.close()

    (seen,) = flows.seen()[flows.names["x"]].status.partitions
    assert (5, 3) == (seen.copied, seen.lag)
    assert offsets_topic in str(seen.note)
    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)
    (seen,) = flows.seen()[flows.names["x"]].status.partitions
    assert (8, 0, None) == (seen.copied, seen.lag, seen.note)


def test_offsets_of_a_flow_without_listeners_are_changed_by_its_file(flows: Flows) -> None:
    """While it does not run: with the checks of a running worker, and what was changed can be undone."""
    topic = flows.topics["x"].create("orders")
    records = flows.topics["x"].write(topic, 8)
    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)
        (source,) = (each for each in flows.workers() if each.name == flows.names["x"])
        given = shlex.split(flows.options(source))
        busy = headrace("offsets", "show", *given, SOURCE_CONNECTOR)
    assert busy.returncode == 1
    assert str(flows.folder) in busy.stderr

    where = json.dumps({"cluster": flows.alias["x"], "topic": topic, "partition": 0})

    def offsets(*arguments: object) -> str:
        done = headrace("offsets", *arguments[:1], *given, SOURCE_CONNECTOR, *arguments[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    wrong = headrace("offsets", "set", *given, SOURCE_CONNECTOR, where, '{"offset":"x"}')
    assert wrong.returncode == 1
    assert "Source offset" in wrong.stderr
    assert '"offset":7' in offsets("show")
    offsets("set", where, '{"offset":3}')
    assert '"offset":3' in offsets("show")
    offsets("undo")
    assert '"offset":7' in offsets("show")
    offsets("set", where, '{"offset":5}')

    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)
    assert sorted([*records, *records[6:]]) == flows.values("y", flows.remote("x", topic))


def test_the_command_that_a_flow_without_listeners_names_resolves_what_has_stopped_it(
    flows: Flows, caplog: pytest.LogCaptureFixture
) -> None:
    """As it is in the log, once the flow does not run."""
    topic = flows.topics["x"].create("orders")
    for write, failed in ((4, False), (4, True)):
        flows.topics["x"].write(topic, write)
        if failed:
            flows.topics["x"].delete_records(topic, 6)
        with flows.opened(ThreadEngine(slots=2), once=True) as running:
            assert failed == run_flows(running, lambda: False)

    named = re.search(r"headrace (offsets set --mirror .*?) goes on at offset 6", caplog.text)
    assert named is not None
    assert "while 'headrace mirror' does not run" in caplog.text
    done = headrace(*shlex.split(named[1]))
    assert done.returncode == 0, done.stderr
    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)
    assert 6 == len(flows.values("y", flows.remote("x", topic)))


def test_all_flows_share_the_slots_and_none_closes_the_data_plane(flows: Flows) -> None:
    """One slot for two flows: they take turns."""
    for side in "xy":
        topic = flows.topics[side].create("t")
        flows.topics[side].write(topic, 50)
    flows.set(headrace_slots="1")
    engine = CountingEngine(slots=1)
    with flows.opened(engine, once=True) as running:
        assert not run_flows(running, lambda: False)

    assert (1, False) == (engine.most, engine.is_closed)
    assert engine.jobs >= 2
    assert [0, 0] == [each.lag for each in flows.seen().values()]


@contextmanager
def going_on(running: Sequence[RunningFlow]) -> Iterator[list[bool]]:
    """The flows run until the end of the block; then the list has whether one has failed."""
    stopping, failed = threading.Event(), list[bool]()
    program = threading.Thread(target=lambda: failed.append(run_flows(running, stopping.is_set)))
    program.start()
    try:
        yield failed
        assert program.is_alive()
    finally:
        stopping.set()
        program.join(60)


def test_a_flow_that_fails_ends_and_the_others_go_on(
    flows: Flows, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the log, and in the exit code when they are stopped."""
    gone, stays = flows.topics["x"].create("gone"), flows.topics["y"].create("stays")
    flows.topics["x"].write(gone, 3)
    flows.set(mirror_on_removed="fail")
    with flows.opened(ThreadEngine(slots=6)) as running, going_on(running) as failed:
        until(lambda: 0 == flows.seen()[flows.names["x"]].lag, seconds=60)
        flows.topics["x"].delete(gone)
        first = next(each for each in running if each.name == flows.names["x"])
        until(lambda: first.has_ended, seconds=60)
        flows.topics["y"].write(stays, 5)
        until(lambda: flows.has("x", flows.remote("y", stays)), seconds=60)
        until(lambda: 0 == flows.seen()[flows.names["y"]].lag, seconds=60)
    assert [True] == failed
    assert f"The flow {flows.names['x']} has failed, and does not run any more" in caplog.text
    assert f"The flow {flows.names['y']} has failed" not in caplog.text


def test_a_flow_that_answers_requests_stays_to_be_repaired(flows: Flows) -> None:
    """Its status says what has failed, and so does the exit code."""
    gone = flows.topics["x"].create("gone")
    flows.topics["x"].write(gone, 3)
    flows.listening("x")
    flows.set(mirror_on_removed="fail")
    with flows.opened(ThreadEngine(slots=6)) as running, going_on(running) as failed:
        until(lambda: 0 == flows.seen()[flows.names["x"]].lag, seconds=60)
        flows.topics["x"].delete(gone)
        until(lambda: flows.errors("x"), seconds=60)
        assert "mirror.on.removed" in str(flows.errors("x"))
        assert flows.errors("y") is None
        assert not any(each.has_ended for each in running)
    assert [True] == failed


@pytest.mark.parametrize("listens", [False, True])
def test_both_ways_are_copied_after_a_start_while_one_cluster_was_away(
    flows: Flows, broker: Broker, caplog: pytest.LogCaptureFixture, *, listens: bool
) -> None:
    """Longer than the start's deadline; it is no failure once the cluster is back. Listeners answer all the time."""
    url = flows.listening("x") if listens else None
    orders, bills = flows.topics["x"].create("orders"), flows.topics["y"].create("bills")
    flows.topics["x"].write(orders, 3)
    flows.topics["y"].write(bills, 4)
    flows.set(headrace_start_deadline_ms="1000")
    broker.stop()
    with flows.opened(ThreadEngine(slots=6)) as running, going_on(running) as failed:
        until(lambda: f"The flow {flows.names['x']} does not run" in caplog.text, seconds=60)
        first = next(each for each in running if each.name == flows.names["x"])
        late = first.delay
        # It has been tried again in vain.
        until(lambda: first.delay is not late, seconds=60)
        if url is not None:
            assert 503 == httpx.get(f"{url}/health").status_code
        broker.start()
        until(lambda: flows.has("y", flows.remote("x", orders)), seconds=60)
        until(lambda: flows.has("x", flows.remote("y", bills)), seconds=60)
        until(lambda: [0, 0] == [each.lag for each in flows.seen().values()], seconds=60)
        if url is not None:
            assert 200 == httpx.get(f"{url}/health").status_code
            assert {} == flows.errors("x")
    assert [False] == failed
    assert 3 == len(flows.values("y", flows.remote("x", orders)))
    assert 4 == len(flows.values("x", flows.remote("y", bills)))


def test_records_wait_since_the_time_that_the_first_of_them_has(flows: Flows) -> None:
    """Each partition's own, where nothing is copied yet; a topic that is gone is noted later."""
    topic = flows.topics["x"].create("t", 2)
    producer = flows.topics["x"].producer()
    for number, time_ms in ((0, 1_000), (0, 2_000), (1, 5_000)):
        producer.produce(topic, value="v", partition=number, timestamp=time_ms)
    assert 0 == producer.flush(30)
    before = flows.seen()[flows.names["x"]].status
    assert [(2, None, 2, 1_000), (1, None, 1, 5_000)] == [
        (each.end, each.copied, each.lag, each.waiting_ms) for each in before.partitions
    ]
    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)
    producer.produce(topic, value="v", partition=0, timestamp=9_000)
    assert 0 == producer.flush(30)
    after = flows.seen()[flows.names["x"]].status
    assert [(3, 2, 1, 9_000), (1, 1, 0, None)] == [
        (each.end, each.copied, each.lag, each.waiting_ms) for each in after.partitions
    ]
    flows.topics["x"].delete(topic)
    gone = flows.seen()[flows.names["x"]].status
    assert ["there is no such topic to copy"] * 2 == [each.note for each in gone.partitions]
