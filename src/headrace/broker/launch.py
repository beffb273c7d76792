"""Starts Kafka's Java programs: the one that formats the storage, and the broker."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from headrace.broker.layout import Layout
from headrace.connect.errors import ConnectError
from headrace.jvm.jars import class_path
from headrace.jvm.java import find_java

# What Kafka's own start script gives a broker.
BROKER_OPTIONS = (
    "-Xms256m",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)
# A program that lives for a second is better off without the optimising compiler.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
FORMAT_SECONDS = 120.0
WATCHER = Path(__file__).with_name("leash.py")


def format_storage(layout: Layout) -> None:
    """Make Kafka's storage in the folder; takes about a second."""
    command = _java(layout, SHORT_LIVED)
    command += ["kafka.tools.StorageTool", "format", "-t", _new_cluster_id()]
    command += ["-c", str(layout.settings)]
    with layout.log_file.open("ab") as output:
        code = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=FORMAT_SECONDS,
            check=False,
        ).returncode
    if code:
        raise ConnectError(
            f"Kafka could not make its storage in {layout.stored} (exit code {code}):\n"
            f"{layout.log_tail()}\nSet right what it complains of and start again with --fresh."
        )


def launch(layout: Layout, *, leash: int | None) -> subprocess.Popen[bytes]:
    """Start the broker and return at once.

    *leash* is the reading end of a pipe: the broker is killed when the writing end is closed. Without
    one the broker goes on by itself. Either way it has a session of its own, so that Ctrl-C in the
    terminal does not reach it.
    """
    command = [*_java(layout, BROKER_OPTIONS), "kafka.Kafka", str(layout.settings)]
    if leash is not None:
        command = [sys.executable, "-I", "-S", str(WATCHER), str(leash), *command]
    with layout.log_file.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=layout.folder,
            start_new_session=True,
            pass_fds=() if leash is None else (leash,),
        )


def _java(layout: Layout, options: Sequence[str]) -> list[str]:
    java = find_java()
    logging = f"-Dlog4j2.configurationFile={layout.log_config.as_uri()}"
    jars = class_path("broker", java=java)
    return [str(java.executable), *options, logging, "-cp", jars]


def _new_cluster_id() -> str:
    # Kafka's own form of an id, made without starting Java for it; a leading dash would be an option.
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return made if not made.startswith("-") else _new_cluster_id()


def leash_pipe() -> tuple[int, int]:
    """A pipe for *leash*: (reading end, writing end); no other program inherits either."""
    return os.pipe()
