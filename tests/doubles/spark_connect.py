"""A real Spark Connect server on loopback, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from end_to_end.process_tree import tasks_of
from headrace.jvm.jars import spark_jars
from headrace.jvm.java import find_java, spark_python
from waiting import until

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 90.0
# It lives for minutes: the optimising compiler would take as much as it gives.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class ConnectServer:
    """Started on entry on a free port, killed on exit; *folder* takes its log."""

    def __init__(self, folder: Path, *, slots: int = 4) -> None:
        self._log = folder / "connect-server.log"
        self._slots = slots
        self._port = _free_port()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What ``spark.remote`` is to be."""
        return f"sc://127.0.0.1:{self._port}"

    def tasks(self) -> list[int]:
        """The Python processes that run slots."""
        return [] if self._child is None else tasks_of(self._child.pid)

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start it, also after it was killed; returns when it answers."""
        spark_home = spark_jars().parent
        command = [
            str(spark_home / "bin" / "spark-submit"),
            "--class",
            _CLASS,
            "--master",
            f"local[{self._slots}]",
            "--conf",
            f"spark.connect.grpc.binding.port={self._port}",
            "--conf",
            "spark.connect.grpc.binding.address=127.0.0.1",
            "--conf",
            "spark.ui.enabled=false",
            "--driver-java-options",
            _QUICK_JVM,
            "spark-internal",
        ]
        settings = {
            "JAVA_HOME": str(find_java().home),
            **spark_python(sys.executable, os.environ.get("PATH", "")),
            "SPARK_HOME": str(spark_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                command, env={**os.environ, **settings}, stdout=log, stderr=log
            )
        try:
            until(self._answers, seconds=_START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def _answers(self) -> bool:
        if self._child is not None and self._child.poll() is not None:
            raise AssertionError(f"The Spark Connect server ended; see {self._log}.")
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
