"""What a worker that serves costs, and how soon it acts on requests: each case measures a few figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.control_scene import ControlScene, files_connector
from benchmarks.figure import Figure
from benchmarks.idle_source import IDLE, PROBED, STAYING
from benchmarks.process_tree import command_of
from benchmarks.report import MIB
from benchmarks.service import Service, alone
from benchmarks.spark_start import have_archive, starts

_FEW, _MANY, _SLOWLY = 100, 1_000_000, "4000"
_COMMIT_SECONDS = 300.0
# Until what a JVM compiles and collects after its start is over.
_SETTLING_SECONDS = 20.0
# Until a polled connector that finds nothing rests for as long as it ever does.
_LONGEST_REST_SECONDS = 40.0
_IDLE = 10
_SIZES = (2, 8, 32)
# What is in the command lines of the processes in which Spark runs Python.
_OF_SLOTS = "pyspark"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCase:
    """Something to measure; *key* names it on the command line."""

    key: str
    title: str
    measured: Callable[[ControlScene], Sequence[Figure]]


def _first_records(scene: ControlScene) -> Sequence[Figure]:
    seconds = list[float]()
    with alone(scene.folder(), scene.bootstrap) as service:
        _warm_up(scene, service)
        for _ in range(scene.scale.rounds):
            seconds.append(_first_record(scene, service))
    title = "from POST /connectors to the first committed record, warm session"
    return [
        Figure(title=f"{title}, median", value=statistics.median(seconds), unit="s", most=0.5),
        Figure(title=f"the same, longest of {len(seconds)}", value=max(seconds), unit="s"),
    ]


def _first_record(scene: ControlScene, service: Service) -> float:
    """Create a connector for a small file and an existing topic; until its records are committed."""
    topic, path = scene.topic(), scene.file(_FEW)
    log = scene.log(topic)
    began = time.time()
    service.create(topic, files_connector(path, topic))
    service.until(
        lambda: log.follow().committed > 0, seconds=_COMMIT_SECONDS, what="The first record"
    )
    service.request("DELETE", f"/connectors/{topic}")
    return (log.tally.last_committed_ms or 0) / 1e3 - began


def _warm_up(scene: ControlScene, service: Service) -> None:
    """Run something, so that the session is there, and the Python processes of its slots."""
    _first_record(scene, service)


def _restarts(scene: ControlScene) -> Sequence[Figure]:
    have_archive()
    seconds = [_restarted(scene) for _ in range(max(1, scene.scale.rounds // 3))]
    title = (
        "from the start of a killed worker to its first new record committed, the JVM's start in it"
    )
    return [
        Figure(title=f"{title}, median", value=statistics.median(seconds), unit="s", most=8.0),
        Figure(title=f"the same, longest of {len(seconds)}", value=max(seconds), unit="s"),
    ]


def _restarted(scene: ControlScene) -> float:
    """Kill a worker in the middle of a file, and start it again."""
    topic, folder = scene.topic(), scene.folder()
    log = scene.log(topic)
    config = files_connector(scene.file(_MANY), topic, headrace_max_records_per_second=_SLOWLY)
    with alone(folder, scene.bootstrap) as first:
        first.create(topic, config)
        first.until(lambda: log.follow().transactions > 1, seconds=_COMMIT_SECONDS, what="A record")
        first.kill()
    before = log.follow().committed
    with alone(folder, scene.bootstrap) as second:
        second.until(
            lambda: log.follow().committed > before, seconds=_COMMIT_SECONDS, what="A new record"
        )
        return (log.tally.last_committed_ms or 0) / 1e3 - second.began


def _paused(scene: ControlScene) -> Sequence[Figure]:
    folder, count = scene.folder(), scene.scale.connectors
    with alone(folder, scene.bootstrap) as service:
        empty = service.rss_bytes()
        for number in range(count):
            config = files_connector(folder / f"{number}", f"topic-{number}")
            service.create(f"paused-{number}", config, state="PAUSED")
    with alone(folder, scene.bootstrap) as service:
        service.until(
            lambda: len(service.request("GET", "/connectors").json()) == count,
            seconds=_COMMIT_SECONDS,
            what="The list of connectors",
        )
        start = time.time() - service.began
        seconds = [asked(service, count) for _ in range(scene.scale.rounds)]
        used = service.rss_bytes()
    title = f"{count} paused connectors"
    return [
        Figure(title=f"{title}: memory of the worker", value=used / MIB, unit="MiB"),
        Figure(title="memory of a new worker without any", value=empty / MIB, unit="MiB"),
        Figure(title=f"{title}: from the start to GET /connectors", value=start, unit="s"),
        Figure(
            title=f"{title}: GET /connectors?expand=status&expand=info, median",
            value=statistics.median(seconds),
            unit="s",
        ),
    ]


def asked(service: Service, count: int) -> float:
    """How long the list of all connectors takes, with their states and configurations; there are *count*."""
    began = time.monotonic()
    found = service.request("GET", "/connectors?expand=status&expand=info")
    took = time.monotonic() - began
    assert len(found.json()) == count
    return took


def _idle_planned(scene: ControlScene) -> Sequence[Figure]:
    with _idle_service(scene, slots=2) as service:
        alone = _alone_percent(scene, service)
        names = _created(scene, service, lambda: files_connector(scene.file(_FEW), scene.topic()))
        # They are idle when they have read what they have.
        for name in names:
            service.until(partial(_has_read, service, name), seconds=_COMMIT_SECONDS, what=name)
        more = idle_percent(scene, service) - alone
    return [
        Figure(title="an idle Spark session, alone", value=alone, unit="% of a core"),
        Figure(
            title=f"what {_IDLE} idle planned connectors add",
            value=more,
            unit="% of a core",
            most=1.0,
        ),
    ]


def _idle_polled(scene: ControlScene) -> Sequence[Figure]:
    with _idle_service(scene, slots=_IDLE) as service:
        alone = _alone_percent(scene, service)
        probed, staying = (
            _passing_percent(scene, service, each) - alone for each in (PROBED, STAYING)
        )
        _created(scene, service, lambda: {"connector.class": IDLE})
        time.sleep(min(_LONGEST_REST_SECONDS, scene.scale.seconds))
        resting = idle_percent(scene, service) - alone
    title = f"what {_IDLE} idle polled connectors add"
    return [
        Figure(title=f"an idle Spark session of {_IDLE} slots", value=alone, unit="% of a core"),
        Figure(title=f"{title}, probed with has_work", value=probed, unit="% of a core"),
        Figure(
            title="the same, without it: polled now and then", value=resting, unit="% of a core"
        ),
        Figure(title="the same, staying in their slots", value=staying, unit="% of a core"),
    ]


def _sizes(scene: ControlScene) -> Sequence[Figure]:
    return [figure for slots in _SIZES for figure in _size(scene, slots)]


def _size(scene: ControlScene, slots: int) -> Sequence[Figure]:
    """The memory of a worker all of whose slots are taken by tasks that have nothing."""
    with _idle_service(scene, slots=slots) as service:
        names = _created(scene, service, lambda: {"connector.class": STAYING}, count=slots)
        service.until(
            lambda: all(_runs(service, name) for name in names),
            seconds=_COMMIT_SECONDS,
            what="RUNNING",
        )
        time.sleep(min(_SETTLING_SECONDS, scene.scale.seconds))
        found = service.own_bytes()
        commands = {pid: command_of(pid) for pid in found}
    of_jvm = {pid for pid, command in commands.items() if "java" in command.split(" ")[0]}
    of_slots = {pid for pid, command in commands.items() if _OF_SLOTS in command} - of_jvm
    own = found.keys() - of_jvm - of_slots
    title = f"a worker whose {slots} slots have a task each"
    return [
        Figure(
            title=f"{title}: its own process",
            value=_sum(found, own),
            unit="MiB",
        ),
        Figure(title="Spark's JVM", value=_sum(found, of_jvm), unit="MiB"),
        Figure(
            title="the processes of its slots, all together",
            value=_sum(found, of_slots),
            unit="MiB",
        ),
        Figure(title="everything", value=_sum(found, found), unit="MiB"),
    ]


def _sum(found: Mapping[int, int], pids: Iterable[int]) -> float:
    return sum(found[pid] for pid in pids) / MIB


def _runs(service: Service, name: str) -> bool:
    tasks = service.request("GET", f"/connectors/{name}/status").json()["tasks"]
    return bool(tasks) and all(each["state"] == "RUNNING" for each in tasks)


def _passing_percent(scene: ControlScene, service: Service, connector_class: str) -> float:
    """Per cent of a core that the worker takes with idle connectors, which are deleted then."""
    names = _created(scene, service, lambda: {"connector.class": connector_class})
    percent = idle_percent(scene, service)
    for name in names:
        service.request("DELETE", f"/connectors/{name}")
    return percent


def _idle_service(scene: ControlScene, *, slots: int) -> Service:
    modules = IDLE.partition(":")[0]
    return alone(scene.folder(), scene.bootstrap, headrace_slots=str(slots), plugin_modules=modules)


def _alone_percent(scene: ControlScene, service: Service) -> float:
    """Per cent of a core that a warm worker takes without connectors."""
    _warm_up(scene, service)
    return idle_percent(scene, service)


def _created(
    scene: ControlScene,
    service: Service,
    config: Callable[[], Mapping[str, str]],
    *,
    count: int = _IDLE,
) -> Sequence[str]:
    """The names of new connectors with that configuration."""
    names = [scene.name() for _ in range(count)]
    for name in names:
        service.create(name, config())
    return names


def _has_read(service: Service, name: str) -> bool:
    return bool(service.request("GET", f"/connectors/{name}/offsets").json()["offsets"])


def idle_percent(scene: ControlScene, service: Service) -> float:
    """Per cent of a core that the worker takes once it has settled."""
    time.sleep(min(_SETTLING_SECONDS, scene.scale.seconds))
    began, before = time.monotonic(), service.cpu_seconds()
    time.sleep(scene.scale.seconds)
    took = time.monotonic() - began
    # Python processes of slots end when they have been idle for a while, and what they took goes with them.
    used = [now - before.get(pid, 0.0) for pid, now in service.cpu_seconds().items()]
    return 100 * sum(used) / took


CONTROL_CASES: Final[Sequence[ControlCase]] = (
    ControlCase(key="control-start", title="Spark's start, and a worker's", measured=starts),
    ControlCase(
        key="control-first-record", title="POST to the first record", measured=_first_records
    ),
    ControlCase(key="control-restart", title="a killed worker's restart", measured=_restarts),
    ControlCase(key="control-paused", title="many paused connectors", measured=_paused),
    ControlCase(
        key="control-idle-planned", title="idle planned connectors", measured=_idle_planned
    ),
    ControlCase(key="control-idle-polled", title="idle polled connectors", measured=_idle_polled),
    ControlCase(key="control-sizes", title="workers of different sizes", measured=_sizes),
)
