"""`headrace run` before anything runs: what is refused, and how a wait for the broker ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.rest.config import BASIC_AUTH
from waiting import until

NOWHERE = {
    "bootstrap.servers": "127.0.0.1:9",
    "key.converter": "string",
    "value.converter": "string",
    "state.file": "state.db",
}
CONNECTOR = {"name": "c", "connector.class": "files", "topic": "t", "files.path": "in/*.log"}


def _started(folder: Path, worker: dict[str, str], *connectors: dict[str, str]) -> list[str]:
    """The command for these configurations, which lie in *folder*."""
    paths = [folder / "worker.json"]
    paths[0].write_text(json.dumps(worker))
    for number, each in enumerate(connectors):
        paths.append(folder / f"connector{number}.json")
        paths[-1].write_text(json.dumps(each))
    return [sys.executable, "-m", "headrace", "run", *map(str, paths)]


@pytest.mark.parametrize(
    ("number", "code", "output"),
    [
        (signal.SIGTERM, 143, "headrace: terminated."),
        (signal.SIGINT, 130, "headrace: interrupted."),
    ],
)
def test_a_signal_ends_the_wait_for_the_broker(
    tmp_path: Path, number: signal.Signals, code: int, output: str
) -> None:
    """At once, with a line and no traceback, when there is no one to answer meanwhile."""
    log = tmp_path / "log"
    with log.open("w") as stream:
        # Whoever runs the tests in the background may ignore SIGINT; a program that is started does not.
        worker = subprocess.Popen(
            [*_started(tmp_path, NOWHERE, CONNECTOR), "--once"],
            stderr=stream,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
    try:
        until(lambda: "Waiting for Kafka at 127.0.0.1:9: " in log.read_text(), seconds=30)
        worker.send_signal(number)
        ended = worker.wait(10)
    finally:
        worker.kill()
        worker.wait()

    assert code == ended
    assert output == log.read_text().splitlines()[-1]
    assert "Traceback" not in log.read_text()


_IMPORTED = """
import pathlib, time
try:
    pathlib.Path("importing").touch()
    time.sleep(60)
except BaseException:
    {then}
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
@pytest.mark.parametrize("then", ["raise", "raise SystemExit(1)", "pass"])
def test_a_signal_ends_the_import_of_a_plugin(
    tmp_path: Path, number: signal.Signals, code: int, then: str
) -> None:
    """Whatever its module makes of it: it is never taken for a plugin that cannot be loaded."""
    (tmp_path / "slow.py").write_text(_IMPORTED.format(then=then))
    worker = {**NOWHERE, "plugin.path": str(tmp_path), "plugin.modules": "slow"}
    connector = {**CONNECTOR, "connector.class": "slow:Connector"}
    process = subprocess.Popen(
        [*_started(tmp_path, worker, connector), "--once"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    try:
        until((tmp_path / "importing").exists, seconds=30)
        process.send_signal(number)
        _, output = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()

    assert code == process.returncode, output
    assert "could not be loaded" not in output
    assert "Traceback" not in output


def test_everything_wrong_is_reported_at_once(tmp_path: Path) -> None:
    """Of all connectors, and with the paths of files that cannot be read."""
    bad = {**CONNECTOR, "tasks.max": "none"}
    command = _started(tmp_path, NOWHERE, bad, {**CONNECTOR, "name": "d", "topic": ""})
    ended = subprocess.run(
        [*command, str(tmp_path / "nothing.json")], capture_output=True, text=True, check=False
    )

    assert 1 == ended.returncode
    for shown in ("connector c has", "connector d has", f"{tmp_path}/nothing.json has 1 problem"):
        assert shown in ended.stderr


def test_all_that_is_wrong_with_the_worker_s_file_is_reported_at_once(tmp_path: Path) -> None:
    """Its own settings, those that have no effect, those of listeners, and the files that these name."""
    worker = {
        **NOWHERE,
        "task.shutdown.graceful.timeout.ms": "abc",
        "config.storage.topic": "configs",
        "admin.listeners": "what",
        "rest.extension.classes": BASIC_AUTH,
        "rest.basic.auth.credentials.file": "/no/such/file",
        "listeners": "https://localhost:0",
    }
    ended = subprocess.run(_started(tmp_path, worker), capture_output=True, text=True, check=False)

    assert 1 == ended.returncode
    assert [
        "task.shutdown.graceful.timeout.ms",
        "config.storage.topic",
        "admin.listeners",
        "rest.basic.auth.credentials.file",
        "ssl.keystore.location",
    ] == [line.split(":")[0].strip() for line in ended.stderr.splitlines()[1:]]


def test_converters_that_are_missing_are_reported(tmp_path: Path) -> None:
    """As what is required and missing, beside what else is wrong."""
    worker = {"bootstrap.servers": "127.0.0.1:9", "header.converter": "strange"}

    ended = subprocess.run(_started(tmp_path, worker, CONNECTOR), capture_output=True, text=True)

    missing = 'Missing required configuration "{}" which has no default value.'
    assert 1 == ended.returncode
    for key in ("key.converter", "value.converter"):
        assert f"{key}: {missing.format(key)}" in ended.stderr
    assert "header.converter: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_address_without_a_port_is_refused_at_once(tmp_path: Path) -> None:
    """With the worker's file and the key, before anything is waited for."""
    command = _started(tmp_path, {**NOWHERE, "bootstrap.servers": "notaport"}, CONNECTOR)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 1 == ended.returncode
    assert f"{tmp_path}/worker.json has 1 problem:\n  bootstrap.servers: " in ended.stderr
    assert "Invalid url in bootstrap.servers: notaport" in ended.stderr


def test_listeners_that_are_none_are_reported_with_their_file(tmp_path: Path) -> None:
    """They are read later than the rest of it, which a user need not know."""
    command = _started(tmp_path, {**NOWHERE, "listeners": "http://h:80x"}, CONNECTOR)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 1 == ended.returncode
    assert ended.stderr.startswith(
        f"headrace: {tmp_path}/worker.json has 1 problem:\n  listeners: "
    )


def test_a_state_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    """Before Kafka is looked for, and without making the folder."""
    command = _started(tmp_path, {**NOWHERE, "state.file": "stat/worker.db"}, CONNECTOR)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 1 == ended.returncode
    assert f"state.file: The folder {tmp_path}/stat does not exist." in ended.stderr
