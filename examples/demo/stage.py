"""What the demonstration runs on: a broker that is fresh each time, and Spark."""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from leaving import kill_started, nothing_left_behind
from logs import errors_kept
from screen import Screen
from settings import FOLDER, LOG, SLOTS

from headrace.broker import Broker
from headrace.connect.errors import ConnectError
from headrace.jvm.java import find_java
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings

BROKER_FOLDER = FOLDER / "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A running broker, and Spark with its Python processes warm."""

    bootstrap: str
    engine: SparkEngine


@contextmanager
def stage(screen: Screen) -> Iterator[Stage]:
    """Start both, side by side; on leaving, however that comes, end all that was started."""
    started = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(_alone())
        stack.enter_context(errors_kept(LOG))
        stack.enter_context(nothing_left_behind())
        java = find_java()
        engine = SparkEngine(SparkSettings(master=f"local[{SLOTS}]"), slots=SLOTS)
        stack.callback(engine.close)
        session = stack.enter_context(ThreadPoolExecutor(max_workers=1)).submit(engine.session)
        # A session that is only being made would otherwise be waited for.
        stack.callback(lambda: session.done() or kill_started())
        broker = stack.enter_context(_fresh_broker())
        screen.say(f"  Kafka is ready on {broker.bootstrap}  ({time.monotonic() - started:.1f} s)")
        version = session.result().version
        screen.say(
            f"  Spark {version} is ready on Java {java.major}, with {SLOTS} slots  "
            f"({time.monotonic() - started:.1f} s)"
        )
        yield Stage(bootstrap=broker.bootstrap, engine=engine)


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the folder, so that two demonstrations do not take each other's broker away."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConnectError(
                "The demonstration runs already in this clone; wait for it, or end it with Ctrl-C."
            ) from error
        yield


@contextmanager
def _fresh_broker() -> Iterator[Broker]:
    # Somebody may have started it again, to look at what the last demonstration left.
    Broker(BROKER_FOLDER).stop()
    shutil.rmtree(BROKER_FOLDER, ignore_errors=True)
    for file in FOLDER.glob("state.db*"):
        file.unlink()
    with Broker(BROKER_FOLDER) as broker:
        yield broker
