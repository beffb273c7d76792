"""A standalone Spark cluster on loopback, for tests: a master, and workers that start executors for each application."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from end_to_end.process_tree import below, send
from headrace.broker.broker import free_port
from headrace.jvm.jars import spark_jars
from headrace.jvm.java import find_java
from waiting import until

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_START_SECONDS = 120.0
# They live for minutes: the optimising compiler would take as much as it gives.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkCluster:
    """Started on entry, killed on exit with its executors; each of its *workers* gives *cores*. *folder* takes logs and work."""

    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 4) -> None:
        self._folder = folder
        self._count, self._cores = workers, cores
        self._port = free_port(choices=random.SystemRandom())
        self._started = list[subprocess.Popen[bytes]]()

    @property
    def url(self) -> str:
        """What ``spark.master`` is to be."""
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        with ExitStack() as failed:
            failed.callback(self._kill)
            self._start("master", _MASTER, "--port", str(self._port))
            until(self._answers, seconds=_START_SECONDS)
            for number in range(self._count):
                given = ["--cores", str(self._cores), "--memory", "4g", self.url]
                work = self._folder / f"work-{number}"
                self._start(f"worker-{number}", _WORKER, "--work-dir", str(work), *given)
            told = self._folder / "master.log"
            until(
                lambda: told.read_text().count("Registering worker") == self._count,
                seconds=_START_SECONDS,
            )
            failed.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    def executors(self) -> list[int]:
        """The processes of all applications' executors."""
        return [pid for each in self._started for pid in below(each.pid, _EXECUTOR)]

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        home = spark_jars().parent
        settings = {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        }
        command = [str(home / "bin" / "spark-class"), kind, "--host", "127.0.0.1"]
        with (self._folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [*command, "--webui-port", "0", *arguments],
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
            )
        self._started.append(started)

    def _kill(self) -> None:
        executors = self.executors()
        for each in self._started:
            each.kill()
            each.wait()
        for pid in executors:
            send(pid)

    def _answers(self) -> bool:
        assert self._started[0].poll() is None, (self._folder / "master.log").read_text()
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self._port)) == 0
