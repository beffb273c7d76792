"""The same connector files run by a worker of Kafka Connect and by ours, one after the other, into the same topics."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from headrace.broker.folder import as_text
from judges.chains import STRING, ChainCase
from judges.connect_worker import ConnectWorker, connect_standalone
from judges.landed import Topics, landed
from judges.lines import java_length, written
from waiting import until

# Each takes a quarter of a minute where nothing else runs.
CONNECT_SECONDS = 240.0
OUR_SECONDS = 300.0
WORKER = {"key.converter": STRING, "value.converter": STRING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """What each of the two has written."""

    theirs: Topics
    ours: Topics


def run_both(bootstrap: str, folder: Path, cases: Sequence[ChainCase]) -> Both:
    """Run *cases* with both workers; *folder* is empty."""
    files = {name: str(path) for name, path in written(folder).items()}
    connectors = [_written(folder, case.name, case.config(files[case.file])) for case in cases]
    worker = {**WORKER, "bootstrap.servers": bootstrap}
    _, before = landed(bootstrap, _topics(bootstrap, cases), behind={})
    _run_theirs(folder, worker, connectors, cases)
    theirs, between = landed(bootstrap, _topics(bootstrap, cases), behind=before)
    _run_ours(folder, worker, connectors)
    ours, _ = landed(bootstrap, _topics(bootstrap, cases), behind=between)
    return Both(theirs=theirs, ours=ours)


def _written(folder: Path, name: str, config: Mapping[str, str]) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(config))
    return path


def _topics(bootstrap: str, cases: Sequence[ChainCase]) -> list[str]:
    """The topics of *cases* that there are, whatever routers have made of their names."""
    known = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    names = {case.name for case in cases}
    return sorted(each for each in known if each.partition(".")[0] in names)


def _run_theirs(
    folder: Path, worker: Mapping[str, str], connectors: Sequence[Path], cases: Sequence[ChainCase]
) -> None:
    own = folder / "connect"
    own.mkdir()
    # Where nothing is left, nothing is committed.
    ends = {case.name: java_length(case.file) for case in cases if case.keeps_any}
    with connect_standalone(own, worker, connectors) as running:
        until(lambda: _has_read(running, ends), seconds=CONNECT_SECONDS)


def _has_read(running: ConnectWorker, ends: Mapping[str, int]) -> bool:
    assert [] == running.failures()
    positions = running.positions()
    return all(positions.get(name) == end for name, end in ends.items())


def _run_ours(folder: Path, worker: Mapping[str, str], connectors: Sequence[Path]) -> None:
    properties = folder / "headrace.properties"
    own = {
        "group.id": f"judged-{random.SystemRandom().getrandbits(32)}",
        "state.file": str(folder / "state.db"),
        # Many short ones wait for each other less.
        "headrace.slots": "4",
        "poll.linger.ms": "0",
    }
    properties.write_text(as_text({**worker, **own}))
    command = [sys.executable, "-m", "headrace", "run", str(properties), *map(str, connectors)]
    ended = subprocess.run(
        [*command, "--once"], capture_output=True, text=True, check=False, timeout=OUR_SECONDS
    )
    assert ended.returncode == 0, ended.stderr
