"""`headrace cluster`: a Kafka broker and a group of workers on this machine, for experiments."""

from __future__ import annotations

import json
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import click

from headrace.broker import Broker
from headrace.broker.broker import free_port, until
from headrace.broker.folder import as_text
from headrace.cli.broker import FOLDER, NOT_RUNNING, key_values
from headrace.cli.rest_client import RestClient, WorkerError
from headrace.cli.table import table
from headrace.connect.errors import ConnectError
from headrace.jvm.cache import cache_root
from headrace.pids import identity_of, send

_GROUP: Final = "headrace-cluster"
# What a trial does not want to wait for is shorter than Kafka Connect's own.
_SETTINGS: Final = {
    "group.id": _GROUP,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "offset.storage.topic": f"{_GROUP}-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": f"{_GROUP}-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": f"{_GROUP}-status",
    "status.storage.replication.factor": "1",
    "scheduled.rebalance.max.delay.ms": "10000",
    "headrace.slots": "2",
}
_START_SECONDS: Final = 120.0
# A worker hands over before it ends.
_STOP_SECONDS: Final = 45.0
_LOOK_SECONDS: Final = 0.2
_ANSWER_SECONDS: Final = 5.0
_NAME: Final = re.compile(r"worker-([1-9][0-9]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A worker that was started: its process, by an *identity* that a later process with the same pid does not have, and its port.

    It was started with the settings *given*; those *kept* were given for starts after which it answered.
    """

    pid: int
    identity: str
    port: int
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return identity_of(self.pid) == self.identity


class ClusterWorker:
    """The worker with this *number*, counted from 1, of the cluster in *folder*."""

    def __init__(self, folder: Path, number: int) -> None:
        self.name = f"worker-{number}"
        # The worker's process has a working directory of its own.
        self._folder = folder.absolute() / self.name
        self._state = self._folder / "process.json"
        self.config, self.log = self._folder / "worker.properties", self._folder / "log"

    @classmethod
    def every(cls, folder: Path) -> Sequence[ClusterWorker]:
        """Those that were ever started there."""
        names = (_NAME.fullmatch(each.name) for each in folder.glob("worker-*"))
        return [cls(folder, number) for number in sorted(int(each[1]) for each in names if each)]

    @property
    def process(self) -> Process | None:
        """Its last start; ``None`` before the first."""
        if not self._state.exists():
            return None
        return Process(**json.loads(self._state.read_text()))

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self.process is not None and self.process.is_running

    @property
    def url(self) -> str:
        """Where it answers."""
        assert self.process is not None
        return f"http://127.0.0.1:{self.process.port}"

    def start(self, bootstrap: str, settings: Mapping[str, str], *, fresh: bool = False) -> None:
        """Start it with *settings* besides the cluster's own, and with those kept of earlier starts unless it is to be *fresh*.

        Returns at once.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        before = self.process
        port = free_port(choices=random.Random()) if before is None else before.port
        kept = {} if before is None or fresh else before.kept
        given = {**kept, **settings}
        listener = {"bootstrap.servers": bootstrap, "listeners": f"http://127.0.0.1:{port}"}
        self.config.write_text(as_text({**_SETTINGS, **listener, **given}))
        command = [sys.executable, "-m", "headrace", "worker", str(self.config)]
        with self.log.open("ab") as output:
            pid = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                # Ctrl-C in the terminal is not for it.
                start_new_session=True,
            ).pid
        self._store(
            Process(pid=pid, identity=identity_of(pid) or "", port=port, given=given, kept=kept)
        )

    def is_ready(self) -> bool:
        """Whether it answers that it is well; what it was given is then kept. Raises ``ConnectError`` when it has ended."""
        if not self.is_running:
            raise ConnectError(f"The worker {self.name} has ended. Its log says why: {self.log}.")
        try:
            with RestClient(self.url, seconds=_ANSWER_SECONDS) as client:
                client.get("health")
        except WorkerError:
            return False
        process = self.process
        assert process is not None
        self._store(replace(process, kept=process.given))
        return True

    def _store(self, process: Process) -> None:
        self._state.write_text(json.dumps(asdict(process)))

    def ask_to_end(self) -> bool:
        """Have it hand over and end; returns whether it ran."""
        return self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> bool:
        process = self.process
        return process is not None and send(number, pid=process.pid, identity=process.identity)

    def row(self) -> tuple[str, ...]:
        """What `status` says of it."""
        assert self.process is not None
        state = "runs" if self.is_running else "has ended"
        return self.name, state, self.url, str(self.process.pid), str(self.log)


_of_folder = click.option(
    "--data",
    "folder",
    type=FOLDER,
    default=lambda: cache_root() / "cluster",
    show_default="the cache folder's cluster/",
    help="Where the broker and the workers store everything; it says which cluster is meant.",
)


@click.group()
def cluster() -> None:
    """Start and stop a Kafka broker and a group of workers on this machine."""


@cluster.command()
@_of_folder
@click.option(
    "--workers", type=click.IntRange(min=1), default=3, show_default=True, help="How many."
)
@click.option("--fresh", is_flag=True, help="Remove everything that was stored before.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the workers that are started; it is kept for their next start.",
)
def start(*, folder: Path, workers: int, fresh: bool, properties: Sequence[str]) -> None:
    """Start what does not run, and return when all workers answer. They run until `stop`."""
    settings = key_values(properties)
    broker = Broker(folder / "broker", port=_port_of(folder), detached=True)
    if fresh and (broker.is_running or any(each.is_running for each in _every(folder))):
        raise click.UsageError("The cluster runs: stop it before it is started with --fresh.")
    broker.start(fresh=fresh)
    chosen = [ClusterWorker(folder, number + 1) for number in range(workers)]
    before = [each.name for each in chosen if each.is_running]
    for each in chosen:
        if each.name not in before:
            each.start(broker.bootstrap, settings, fresh=fresh)
    try:
        _await(chosen)
    except ConnectError as error:
        raise ConnectError(f"{error} {_going_on(folder)}") from error
    click.echo(_described(folder, broker))
    if settings and before:
        click.echo(f"They ran before, without what is given now: {', '.join(before)}.", err=True)


@cluster.command()
@_of_folder
@click.pass_context
def status(ctx: click.Context, *, folder: Path) -> None:
    """Show what runs; the exit code is 3 when nothing does."""
    broker = Broker(folder / "broker")
    if not (broker.is_running or any(each.is_running for each in _every(folder))):
        click.echo(f"No cluster runs on {folder}.")
        ctx.exit(NOT_RUNNING)
    click.echo(_described(folder, broker))


@cluster.command()
@_of_folder
def stop(*, folder: Path) -> None:
    """Stop the workers, then the broker; what they stored stays."""
    ended = [each for each in _every(folder) if each.ask_to_end()]
    until(lambda: not any(each.is_running for each in ended), seconds=_STOP_SECONDS)
    for each in ended:
        each.kill()
    has_stopped = Broker(folder / "broker").stop()
    click.echo("The cluster is stopped." if ended or has_stopped else "The cluster does not run.")


def _every(folder: Path) -> Sequence[ClusterWorker]:
    return [each for each in ClusterWorker.every(folder) if each.process is not None]


def _await(chosen: Sequence[ClusterWorker]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    waiting = chosen
    while waiting := [each for each in waiting if not each.is_ready()]:
        if time.monotonic() > deadline:
            names = ", ".join(each.name for each in waiting)
            logs = ", ".join(str(each.log) for each in waiting)
            raise ConnectError(
                f"{names} did not answer that all is well within {_START_SECONDS:g} s. The logs are {logs}."
            )
        time.sleep(_LOOK_SECONDS)


def _going_on(folder: Path) -> str:
    workers = [each.name for each in _every(folder) if each.is_running]
    going_on = ", ".join(["the broker", *workers])
    command = shlex.join(["headrace", "cluster", "stop", "--data", str(folder)])
    return f"What runs goes on ({going_on}); to end it: {command}"


def _described(folder: Path, broker: Broker) -> str:
    workers = _every(folder)
    lines = [
        f"bootstrap.servers  {broker.bootstrap}{'' if broker.is_running else ' (does not run)'}",
        "",
        *table(("worker", "state", "url", "process", "log"), [each.row() for each in workers]),
        "",
    ]
    running = next((each for each in workers if each.is_running), None)
    if running is None:
        lines.append("No worker runs: 'headrace cluster start' starts them.")
    else:
        lines += [
            f"Create a connector:  headrace connectors create FILE --url {running.url}",
            f"Who runs what:       headrace workers list --url {running.url}",
        ]
    return "\n".join(lines)


def _port_of(folder: Path) -> int:
    before = Broker(folder / "broker").state
    return 0 if before is None else before.port
