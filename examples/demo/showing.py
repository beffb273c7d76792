"""The demonstration itself: send the files, kill a task half way, and show what is in Kafka."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait

from checking import Comparison, compared, in_kafka, table
from killing import Killer
from landing import Landed, Landing
from progress import Progress, megabytes
from reading import records_by_file
from screen import Screen
from settings import FLIGHTS_PER_SECOND, FOLDER, WEATHER_PER_SECOND, connectors, worker_props
from stage import Stage, stage
from telling import Teller

from headrace.connect.errors import ConnectError
from headrace.herder.worker_herder import WorkerHerder
from headrace.observe.event_log import EventLog
from headrace.observe.events import to_all
from headrace.pids import identity_of
from headrace.plugins import checked_worker, validated_connector
from headrace.spark.session import class_archive
from headrace.worker import DataPlane, running

_LOOK_SECONDS = 0.2
FAILED = 1


def show(screen: Screen, leave_if_asked: Callable[[], None]) -> int:
    """Show it all; the exit code. *leave_if_asked* raises when somebody wants it to end; asked while records are sent."""
    screen.say("headrace: real files become Kafka records through Spark, each exactly once.", "")
    files = records_by_file()
    screen.say("Starting Kafka and Spark …")
    with stage(screen) as ready:
        _introduce(screen, files)
        killer = Killer("flights")
        landed = _sent(ready, screen, killer, files, leave_if_asked=leave_if_asked)
        screen.say("", "Reading it all back with another client (kafka-python, read_committed) …")
        comparison = compared(files, in_kafka(ready.bootstrap, connectors()))
        bootstrap = ready.bootstrap
    code = _conclude(screen, comparison, landed, killer)
    if not code:
        screen.say("", *_next(bootstrap))
    _await_archive(screen, leave_if_asked)
    return code


def _introduce(screen: Screen, files: Mapping[str, Counter[str]]) -> None:
    total = sum(records.total() for records in files.values())
    screen.say(
        "",
        f"Sending {total:,} records of {len(files)} files in examples/data, with 2 connectors:",
        f"  flights  JSON lines, plain and gzip, 2 tasks, held to {FLIGHTS_PER_SECOND:,} records/s each",
        f"  weather  CSV, 2 tasks, held to {WEATHER_PER_SECOND:,} records/s each",
        "Held back so that you can watch; docs/performance.md has the real speed.",
        "",
    )


def _sent(
    ready: Stage,
    screen: Screen,
    killer: Killer,
    files: Mapping[str, Counter[str]],
    *,
    leave_if_asked: Callable[[], None],
) -> Landed:
    """Run both connectors until all is read; what has landed then."""
    config = checked_worker(worker_props(ready.bootstrap))
    props = connectors()
    with (
        Landing(ready.bootstrap, props) as landing,
        running(
            config,
            [validated_connector(each, config) for each in props.values()],
            state_file=FOLDER / "state.db",
            emit=to_all(killer, Teller(screen), EventLog()),
            once=True,
            data_plane=DataPlane.of(ready.engine),
        ) as herder,
    ):
        herder.ready()
        _watch(herder, landing, screen, killer=killer, files=files, leave_if_asked=leave_if_asked)
        return landing.landed


def _watch(
    herder: WorkerHerder,
    landing: Landing,
    screen: Screen,
    *,
    killer: Killer,
    files: Mapping[str, Counter[str]],
    leave_if_asked: Callable[[], None],
) -> None:
    """Show progress until everything has been read, and kill one of its tasks half way."""
    progress = Progress(sum(records.total() for records in files.values()))
    half = sum(each.total() for name, each in files.items() if name.startswith("flights")) / 2
    with ThreadPoolExecutor(max_workers=1) as pool:
        ending = pool.submit(herder.wait_for_end)
        try:
            while not ending.done():
                leave_if_asked()
                screen.progress(progress.line(landing.landed, time.monotonic()))
                if killer.victim is None and landing.by_topic["flights"] >= half:
                    _kill(killer, screen)
                wait([ending], timeout=_LOOK_SECONDS)
        finally:
            herder.ask_to_stop()
        failures = ending.result()
    landing.settle()
    screen.end_progress(progress.line(landing.landed, time.monotonic()))
    for name, failure in failures.items():
        raise ConnectError(f"The connector {name} has failed: {failure}")


def _kill(killer: Killer, screen: Screen) -> None:
    victim = killer.kill()
    if victim is None:
        return
    screen.say(
        "",
        f"  Half way. Task {victim.task} of {victim.connector} runs in process {victim.pid}: "
        "kill -9, on purpose.",
    )


def _conclude(screen: Screen, comparison: Comparison, landed: Landed, killer: Killer) -> int:
    seconds = max(landed.last_at - landed.first_at, _LOOK_SECONDS)
    screen.say(
        "",
        *table(comparison),
        "",
        f"  {landed.records:,} records, {megabytes(landed.bytes)} in {seconds:.1f} s: "
        f"{landed.records / seconds:,.0f} records/s, as held.",
    )
    if not comparison.is_right():
        screen.say("", "This is wrong: every record should be there once, and nothing else.")
        return FAILED
    if not killer.replanned:
        screen.say("", "This is wrong: no running task was killed, so nothing was shown.")
        return FAILED
    screen.say("  A task was killed in the middle, and each record is there exactly once.")
    return 0


def _await_archive(screen: Screen, leave_if_asked: Callable[[], None]) -> None:
    """Let the process end that the first start of Spark leaves behind, so that nothing runs after the demonstration."""
    maker = class_archive().maker()
    identity = None if maker is None else identity_of(maker)
    if maker is None or identity is None:
        return
    screen.say("", "Once only: Spark's classes are archived, so that it starts in half the time …")
    while identity_of(maker) == identity:
        leave_if_asked()
        time.sleep(_LOOK_SECONDS)


def _next(bootstrap: str) -> tuple[str, ...]:
    return (
        "Where to look next:",
        "  The topics flights and weather are kept until the next ./demo:",
        "    . .venv/bin/activate",
        "    headrace broker start --data .cache/demo/broker",
        f"    python examples/read.py flights {bootstrap} | head -3",
        "    headrace broker stop --data .cache/demo/broker",
        "  README.md             a first connector in ten lines",
        "  examples/demo         what has just run",
        "  docs/performance.md   how fast it is when nothing holds it back",
    )
