"""What many workers of one group cost, and how soon others go on with what one had: each case measures a few figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import Producer

from benchmarks.contender import BenchmarkError
from benchmarks.control import ControlCase, asked, idle_percent
from benchmarks.control_scene import ControlScene, files_connector
from benchmarks.figure import Figure, median_and_worst
from benchmarks.group_scale import GOALS, config_entries, status_entries
from benchmarks.group_scene import (
    DELAY_SECONDS,
    HEARTBEAT_SECONDS,
    REBALANCED,
    RUNS,
    SESSION_SECONDS,
    SPARK,
    STOPPED,
    THREADS,
    Group,
    group,
    is_healthy,
    member,
    times_of,
)
from benchmarks.report import MIB
from benchmarks.service import Service, alone
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import OffsetEntry
from headrace.kafka.transaction_coordinator import TransactionCoordinator

_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 0.01
_FEW: Final = 100
_FENCED: Final = 1_000
_FLOWS_OF_EACH: Final = 2
_WORKERS: Final = 3
# Each is a JVM.
_SPARK_WORKERS: Final = 2
_REQUESTS: Final = 100


class _HandedOver(NamedTuple):
    """One worker's end, in seconds: until its connectors were granted to others, and the longest without a commit of one of them.

    *disturbed* are the connectors of others that stopped meanwhile.
    """

    granted: float
    gap: float
    disturbed: int


def _relinquished(scene: ControlScene, *, command: Sequence[str], workers: int) -> Sequence[Figure]:
    told = "on Spark, warm" if command is SPARK else "tasks in threads"
    with group(scene, workers, command) as made:
        made.add_flows(_FLOWS_OF_EACH * workers)
        found = [
            _handed_over(made, made.workers[turn % workers])
            for turn in range(scene.scale.handovers)
        ]
    return [
        *median_and_worst(
            f"relinquished, heartbeat {HEARTBEAT_SECONDS:.0f} s, {told}: stopped to granted",
            [each.granted for each in found],
            median=0.1,
        ),
        *median_and_worst(
            f"relinquished, {told}: last commit there to first commit here",
            [each.gap for each in found],
            median=2.0,
            worst=5.0,
        ),
        Figure(
            title=f"relinquished, {told}: stops of connectors that did not move",
            value=sum(each.disturbed for each in found),
            unit="",
            most=0,
        ),
    ]


def _left(scene: ControlScene) -> Sequence[Figure]:
    """The same with a plain leave, as Kafka Connect's workers do."""
    with group(scene, _WORKERS, headrace_relinquish_timeout_ms="0") as made:
        made.add_flows(_FLOWS_OF_EACH * _WORKERS)
        turns = range(max(1, scene.scale.handovers // 3))
        # Nothing waits for a leader: what it remembers goes with it.
        found = [_handed_over(made, made.led()[1]) for _ in turns]
    title = f"a plain leave, scheduled.rebalance.max.delay.ms of {DELAY_SECONDS:.0f} s in it"
    return [
        *median_and_worst(f"{title}: stopped to granted", [each.granted for each in found]),
        *median_and_worst(
            f"{title}: last commit there to first commit here", [each.gap for each in found]
        ),
    ]


def _handed_over(made: Group, victim: Service) -> _HandedOver:
    """End one worker, start it again, and wait until it has its share."""
    names = made.entry_of(victim)["connectors"]
    others = [each for each in made.workers if each is not victim]
    stops = sum(len(times_of(each.told(), STOPPED)) for each in others)
    asked_at = time.time()
    victim.end()
    made.await_flows(names, since=time.time())
    gap = max(made.longest_gap(name, since=asked_at) for name in names)
    found = _HandedOver(
        granted=_granted(victim, others, names),
        gap=gap,
        disturbed=sum(len(times_of(each.told(), STOPPED)) for each in others) - stops,
    )
    victim.start()
    made.await_even()
    return found


def _granted(victim: Service, others: Sequence[Service], names: Sequence[str]) -> float:
    """From the last stop of one of *names* at *victim* to the rebalance by which the last of them was given to another worker."""
    stopped = max(times_of(victim.told(), STOPPED))
    logs = [each.told() for each in others]
    granted = list[float]()
    for name in names:
        for log in logs:
            begun = [each for each in times_of(log, RUNS, name) if each > stopped]
            if begun:
                # Right after what it was given is in force, and before any of it runs.
                rebalanced = times_of(log, REBALANCED)
                granted.append(max(each for each in rebalanced if each < begun[0]))
    if len(granted) != len(names):
        raise BenchmarkError(f"Not all of {names} have been granted to another worker.")
    return max(granted) - stopped


def _posted(scene: ControlScene, *, command: Sequence[str], workers: int) -> Sequence[Figure]:
    running, written = list[float](), list[float]()
    with group(scene, workers, command) as made:
        made.add_flows(workers)
        _, follower = made.led()
        for _ in range(scene.scale.rounds):
            found = _running_and_written(scene, follower)
            running.append(found[0])
            written.append(found[1])
    told = "on Spark, warm" if command is SPARK else "tasks in threads"
    title = f"from POST /connectors on a follower, {told}"
    return [
        *median_and_worst(f"{title}: to RUNNING there", running, median=1.0),
        *median_and_worst(f"{title}: to the first committed record", written, median=2.0),
    ]


def _running_and_written(scene: ControlScene, worker: Service) -> tuple[float, float]:
    topic = scene.topic()
    log = scene.log(topic)
    config = files_connector(scene.file(_FEW), topic, tasks_max="1")
    began = time.time()
    worker.create(topic, config)

    def runs() -> bool:
        status = worker.request("GET", f"/connectors/{topic}/status").json()
        states = [status["connector"], *status["tasks"]]
        return len(states) > 1 and all(each["state"] == "RUNNING" for each in states)

    worker.until(runs, seconds=_SECONDS, what="The state RUNNING")
    running = time.time() - began
    worker.until(lambda: log.follow().committed > 0, seconds=_SECONDS, what="The first record")
    worker.request("DELETE", f"/connectors/{topic}")
    return running, (log.tally.last_committed_ms or 0) / 1e3 - began


def _killed(scene: ControlScene) -> Sequence[Figure]:
    seconds = list[float]()
    with group(scene, _WORKERS) as made:
        made.add_flows(_FLOWS_OF_EACH * _WORKERS)
        for turn in range(max(2, scene.scale.rounds // 2)):
            made.await_even()
            victim = made.workers[turn % _WORKERS]
            names = made.entry_of(victim)["connectors"]
            began = time.time()
            victim.kill()
            # What was committed right before its end may be in the log a moment later.
            made.await_flows(names, since=began + HEARTBEAT_SECONDS)
            firsts = [made.first_commit(name, after=began + HEARTBEAT_SECONDS) for name in names]
            seconds.append(max(firsts) - began)
            victim.end()
            victim.start()
    title = (
        f"killed worker, session {SESSION_SECONDS:.0f} s, delay {DELAY_SECONDS:.0f} s: "
        "to the first new record of the last of its connectors"
    )
    most = SESSION_SECONDS + DELAY_SECONDS + 5
    return median_and_worst(title, seconds, median=most, worst=most)


def _rolled(scene: ControlScene) -> Sequence[Figure]:
    with group(scene, _WORKERS) as made:
        made.add_flows(_FLOWS_OF_EACH * _WORKERS)
        began = time.time()
        for each in made.workers:
            each.end()
            each.start()
            made.await_even()
        made.await_flows(made.flows, since=time.time())
        gaps = [made.longest_gap(name, since=began) for name in made.flows]
        took = time.time() - began
    return [
        Figure(
            title=f"rolling restart of {_WORKERS} workers, {len(gaps)} connectors: the longest without a commit of any of them",
            value=max(gaps),
            unit="s",
            most=5.0,
        ),
        Figure(title="the whole restart", value=took, unit="s"),
    ]


def _forwarded(scene: ControlScene) -> Sequence[Figure]:
    with group(scene, 2) as made:
        leader, follower = made.led()
        seconds: dict[Service, list[float]] = {leader: [], follower: []}
        for _ in range(_REQUESTS):
            for each, found in seconds.items():
                began = time.perf_counter()
                each.request("GET", "/admin/workers")
                found.append(time.perf_counter() - began)
    straight, forwarded = (statistics.median(found) * 1e3 for found in seconds.values())
    return [
        Figure(title="a request to the leader, median", value=straight, unit="ms"),
        Figure(
            title="what forwarding adds to it, median",
            value=forwarded - straight,
            unit="ms",
            most=10.0,
        ),
    ]


def _fenced(scene: ControlScene) -> Sequence[Figure]:
    config = producer_config({"bootstrap.servers": scene.bootstrap})
    ids = [f"{scene.name()}-{number}" for number in range(_FENCED)]
    seconds = list[float]()
    for _ in ("new", "known"):
        coordinator = TransactionCoordinator(config)
        began = time.monotonic()
        coordinator.fence(ids, Deadline.after(_SECONDS))
        seconds.append(time.monotonic() - began)
        coordinator.close()
    return [
        Figure(title=f"fencing {_FENCED:,} ids that {what}", value=each, unit="s", most=5.0)
        for what, each in zip(("are new", "the broker knows"), seconds, strict=True)
    ]


class _Idle(NamedTuple):
    percent: float
    mib: float


def _idle(scene: ControlScene) -> Sequence[Figure]:
    folder = scene.folder()
    with alone(folder, scene.bootstrap, command=THREADS) as service:
        lone = _Idle(idle_percent(scene, service), service.rss_bytes() / MIB)
    with group(scene, 2) as made:
        found = [_Idle(idle_percent(scene, each), each.rss_bytes() / MIB) for each in made.led()]
    figures = [
        Figure(title="a worker that stands alone, idle", value=lone.percent, unit="% of a core"),
        Figure(title="the memory of that", value=lone.mib, unit="MiB"),
    ]
    for what, each in zip(("a group's leader", "one that it leads"), found, strict=True):
        figures += [
            Figure(
                title=f"what {what} takes beyond it, idle",
                value=each.percent - lone.percent,
                unit="% of a core",
                most=0.3,
            ),
            Figure(
                title=f"the memory of {what} beyond it",
                value=each.mib - lone.mib,
                unit="MiB",
                most=40.0,
            ),
        ]
    return figures


def _started(scene: ControlScene, *, connectors: int) -> Sequence[Figure]:
    """A worker alone in its group begins with a full config topic."""
    with group(scene, 1) as made:
        made.workers[0].request("GET", "/connectors")
        empty = made.workers[0].rss_bytes() / MIB
    name = scene.name()
    # Made as a worker makes them.
    with member(scene, name, THREADS) as first:
        first.until(partial(is_healthy, first), seconds=_SECONDS, what="The joining of a group")
    _write(scene, f"{name}-configs", list(config_entries(connectors, state="PAUSED")))
    _write(scene, f"{name}-statuses", list(status_entries(connectors)))
    goals, title = GOALS[connectors], f"start with {connectors:,} connectors of 4 tasks"
    with member(scene, name, THREADS) as worker:
        worker.until(
            lambda: len(worker.request("GET", "/connectors").json()) == connectors,
            seconds=_SECONDS,
            what="The list of connectors",
        )
        took = time.time() - worker.began
        used = worker.rss_bytes() / MIB
        seconds = [asked(worker, connectors) for _ in range(scene.scale.rounds)]
    return [
        Figure(
            title=f"{title}: to the answer of GET /connectors",
            value=took,
            unit="s",
            most=goals.start,
        ),
        Figure(
            title=f"{title}: memory beyond an empty worker",
            value=used - empty,
            unit="MiB",
            most=goals.memory,
        ),
        *median_and_worst(
            f"{connectors:,} connectors: GET /connectors?expand=status&expand=info",
            seconds,
            median=0.2 if connectors == min(GOALS) else None,
        ),
    ]


def _write(scene: ControlScene, topic: str, entries: Sequence[OffsetEntry]) -> None:
    producer = Producer({"bootstrap.servers": scene.bootstrap, "linger.ms": 5})
    for key, value in entries:
        producer.produce(topic, key=key, value=value)
        producer.poll(0)
    if producer.flush(_SECONDS):
        raise BenchmarkError(f"The topic {topic} was not written.")


GROUP_CASES: Final[Sequence[ControlCase]] = (
    ControlCase(
        key="group-relinquish",
        title="a worker hands over and ends, tasks in threads",
        measured=partial(_relinquished, command=THREADS, workers=_WORKERS),
    ),
    ControlCase(
        key="group-relinquish-spark",
        title="a worker hands over and ends, on Spark",
        measured=partial(_relinquished, command=SPARK, workers=_SPARK_WORKERS),
    ),
    ControlCase(key="group-leave", title="a worker leaves without handing over", measured=_left),
    ControlCase(
        key="group-post",
        title="POST on a follower, tasks in threads",
        measured=partial(_posted, command=THREADS, workers=_WORKERS),
    ),
    ControlCase(
        key="group-post-spark",
        title="POST on a follower, on Spark",
        measured=partial(_posted, command=SPARK, workers=_SPARK_WORKERS),
    ),
    ControlCase(key="group-kill", title="a worker is killed", measured=_killed),
    ControlCase(key="group-rolling", title="a rolling restart", measured=_rolled),
    ControlCase(key="group-forward", title="a request is forwarded", measured=_forwarded),
    ControlCase(key="group-fence", title="many ids are fenced", measured=_fenced),
    ControlCase(key="group-idle", title="idle members", measured=_idle),
    *(
        ControlCase(
            key=f"group-start-{connectors}",
            title=f"a worker starts with {connectors:,} connectors",
            measured=partial(_started, connectors=connectors),
        )
        for connectors in GOALS
    ),
)
