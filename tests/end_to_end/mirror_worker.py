"""A worker with one mirror, in processes of its own, of which some are killed or frozen."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from end_to_end.process_tree import JVM, below, command, send, tasks_of
from end_to_end.scene import pause
from headrace.pids import identity_of
from waiting import until

SECONDS = 120.0
LEASE_SECONDS = 3.0
# What a shell says of a program that SIGTERM has ended.
_ENDED = 128 + signal.SIGTERM
# It lives for a minute: the optimising compiler would take as much as it gives.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class MirrorWorker:
    """``headrace run`` with the *connector*, on the cluster *target*."""

    def __init__(self, folder: Path, target: str, connector: Mapping[str, str]) -> None:
        self._folder = folder
        worker = {
            "bootstrap.servers": target,
            "state.file": str(folder / "state.db"),
            # A mirror has its own.
            "key.converter": "string",
            "value.converter": "string",
            "group.id": f"g-{connector['name']}",
            "offset.storage.partitions": "2",
            "headrace.slots": "2",
            "headrace.lease.ms": str(round(LEASE_SECONDS * 1000)),
            "headrace.idle.poll.ms": "200",
            "listeners": "http://127.0.0.1:0",
            "spark.driver.extraJavaOptions": _QUICK_JVM,
        }
        self._files = [folder / "worker.json", folder / "mirror.json"]
        for file, content in zip(self._files, (worker, connector), strict=True):
            file.write_text(json.dumps(content))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Again, if it was killed."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headrace", "run", *map(str, self._files)],
                env=dict(os.environ),
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """As an operator does; it has to end without an error."""
        assert self._process is not None
        assert self.is_running, self.said()
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(SECONDS) == _ENDED, self.said()

    def end(self) -> None:
        """Whatever has happened."""
        if self._process is None:
            return
        for pid in below(self._process.pid):
            send(pid, signal.SIGCONT)
            send(pid)
        self._process.kill()
        self._process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the program is."""
        return self._process is not None and self._process.poll() is None

    def said(self) -> str:
        """What it has logged at last."""
        return self._log.read_text(errors="replace")[-6000:]

    def kill_slot(self, chance: random.Random) -> None:
        """One Python process of a task."""
        send(self._slot(chance))

    def freeze_slot(self, chance: random.Random) -> None:
        """One Python process of a task, for longer than its lease; then it goes on, if it is still there."""
        pid = self._slot(chance)
        identity = identity_of(pid)
        send(pid, signal.SIGSTOP)
        pause(chance, 2 * LEASE_SECONDS)
        if identity_of(pid) == identity:
            send(pid, signal.SIGCONT)

    def kill(self, chance: random.Random) -> None:
        """All of it, or only the driver's Python, whose JVM ends a moment later; it is started again."""
        assert self._process is not None
        jvms = below(self._process.pid, JVM)
        if chance.random() < 0.5:
            for pid in jvms:
                send(pid)
        self._process.kill()
        self._process.wait()
        until(lambda: not any(map(identity_of, jvms)), seconds=SECONDS)
        self.start()

    def _slot(self, chance: random.Random) -> int:
        assert self._process is not None
        found = list[int]()
        until(
            lambda: found.extend(tasks_of(self._process.pid)) or found or not self.is_running,  # pyright: ignore[reportOptionalMemberAccess]
            seconds=SECONDS,
        )
        assert found, self.said()
        pid = chance.choice(found)
        with self._log.open("a") as log:
            log.write(f"---- {pid} is hit: {command(pid).decode()[-100:]}\n")
        return pid

    @property
    def _log(self) -> Path:
        return self._folder / "worker.log"
