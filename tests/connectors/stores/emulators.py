"""Emulators of Google's and Azure's stores: installed once into the cache folder, run on loopback."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.broker.broker import free_port, is_free
from headrace.jvm.cache import cache_folder, locked
from waiting import until

AZURITE = "3.35.0"
# What it needs is taken as it was on this day.
AZURITE_BEFORE = "2026-11-01"
FAKE_GCS = "1.56.1"
OLDEST_GO = (1, 26)
_INSTALL_SECONDS = 900


def fake_gcs(log: Path) -> Sequence[str]:
    """The command of fake-gcs-server but for its port, which follows. Skips the test without Go."""
    go = shutil.which("go")
    if go is None or _version_of(go) < OLDEST_GO:
        pytest.skip("needs Go 1.26, which builds fake-gcs-server")

    def install(folder: Path) -> None:
        module = f"github.com/fsouza/fake-gcs-server@v{FAKE_GCS}"
        environment = {**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": "local"}
        _run([go, "install", module], log, environment)

    program = _installed(f"fake-gcs-server-{FAKE_GCS}", install) / "fake-gcs-server"
    options = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port"]
    return [str(program), *options]


def azurite(log: Path) -> Sequence[str]:
    """The command of Azurite but for its port, which follows. Skips the test without Node.js."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("needs Node.js and npm, which install Azurite")

    def install(folder: Path) -> None:
        # Nothing that it brings is run while it is installed.
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"]
        wanted = ["--before", AZURITE_BEFORE, f"azurite@{AZURITE}"]
        _run([npm, "install", "--prefix", str(folder), *quiet, *wanted], log, dict(os.environ))

    folder = _installed(f"azurite-{AZURITE}", install)
    program = folder / "node_modules/azurite/dist/src/blob/main.js"
    options = ["--inMemoryPersistence", "--disableTelemetry", "--blobHost", "127.0.0.1"]
    return [node, str(program), *options, "--blobPort"]


@contextmanager
def serving(
    command: Sequence[str], log: Path, environment: dict[str, str] | None = None
) -> Generator[int]:
    """The port on which *command*, to which it is added, serves."""
    port = free_port(choices=random.Random())
    with log.open("ab") as output:
        child = subprocess.Popen(
            [*command, str(port)],
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: child.poll() is not None or not is_free(port), seconds=60)
        assert child.poll() is None, log.read_text(errors="replace")
        yield port
    finally:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder *name* of the cache, into which *install* put something once and wholly."""
    emulators = cache_folder("emulators")
    folder = emulators / name
    with locked(emulators / "lock"):
        if not folder.exists():
            unfinished = emulators / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            install(unfinished)
            unfinished.rename(folder)
    return folder


def _run(command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
    with log.open("ab") as output:
        code = subprocess.run(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_INSTALL_SECONDS,
        ).returncode
    assert code == 0, log.read_text(errors="replace")


def _version_of(go: str) -> tuple[int, ...]:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    told = subprocess.run([go, "version"], env=environment, capture_output=True, text=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else (0,)
