"""`headrace mirror` before anything is copied: what is refused, and how flows end whose clusters are away."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from cli.conftest import Shell
from cli.test_rest_client import words
from doubles.thread_engine import ThreadEngine
from headrace.cli import mirror, mirror_process
from headrace.cli.mirror_flows import MirrorFile, flow_workers
from headrace.cli.mirror_process import OpenedFlow, state_file, state_folder
from headrace.connect.errors import ConnectError
from headrace.runtime.engine import DataPlane
from waiting import until

NOWHERE = "127.0.0.1:9"
FILE = {
    "clusters": "A, B",
    "A.bootstrap.servers": NOWHERE,
    "B.bootstrap.servers": NOWHERE,
    "A->B.enabled": "true",
    "B->A.enabled": "true",
    "emit.heartbeats.enabled": "false",
    "headrace.start.deadline.ms": "500",
}


def written(folder: Path, **changes: str | None) -> Path:
    """A file with these *changes*."""
    path = folder / "mm2.properties"
    props = {**FILE, **changes}
    path.write_text("".join(f"{key}={value}\n" for key, value in props.items() if value))
    return path


def command(folder: Path, *arguments: object) -> list[str]:
    """``headrace mirror`` with these arguments, and its state in *folder*."""
    (folder / "states").mkdir(exist_ok=True)
    given = [str(each) for each in arguments]
    return [sys.executable, "-m", "headrace", "mirror", *given, "--state", str(folder / "states")]


def ended(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """How it has ended."""
    return subprocess.run(
        command(folder, *arguments), capture_output=True, text=True, check=False, timeout=90
    )


@pytest.mark.parametrize("arguments", [(), ("--once",)], ids=["on", "once"])
def test_a_flow_whose_cluster_is_away_ends_with_the_reason(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """When its time is over, which another flow's need not be; without --once as soon as no flow runs."""
    file = written(tmp_path, **{"A.headrace.start.deadline.ms": "1500"})
    done = ended(tmp_path, *arguments, file)

    assert 1 == done.returncode
    lines = [line for line in done.stderr.splitlines() if "has failed, and does not run" in line]
    first, second = sorted(lines, key=lambda line: "The flow B->A " in line)
    assert "The flow A->B " in first
    assert "The flow B->A " in second
    for line, seconds in ((first, "0.5"), (second, "1.5")):
        assert f"Kafka at {NOWHERE} was not reached" in line
        assert f"Tried for {seconds} s" in line
    assert "Traceback" not in done.stderr


def test_a_flow_is_tried_again_while_another_one_runs_and_answers_requests_meanwhile(
    tmp_path: Path,
) -> None:
    """They are told why it does not run; the log is told once, and the exit code knows, too."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    changes = {
        "A->B.listeners": f"http://127.0.0.1:{port}",
        "A.headrace.start.deadline.ms": "60000",
    }
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(command(tmp_path, written(tmp_path, **changes)), stderr=stream)
    try:
        until(lambda: "The flow A->B does not run: " in log.read_text(), seconds=60)
        health = httpx.get(f"http://127.0.0.1:{port}/health")
        assert 503 == health.status_code
        assert f"still starting up. Kafka at {NOWHERE} was not reached" in health.text
        offsets = f"http://127.0.0.1:{port}/connectors/MirrorSourceConnector/offsets"
        refused = httpx.get(offsets)
        assert f"still starting up: Kafka at {NOWHERE} was not reached" in refused.text
        process.terminate()
        assert 1 == process.wait(30)
    finally:
        process.kill()
        process.wait()
    assert 1 == log.read_text().count("does not run: ")
    assert "The flow A->B was stopped, and has not copied everything: Kafka at" in log.read_text()
    assert "The flow B->A was stopped" not in log.read_text()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_all_flows_while_they_wait(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """At once, and no flow has failed then."""
    file = written(tmp_path, **{"headrace.start.deadline.ms": "60000"})
    log = tmp_path / "log"
    with log.open("w") as stream:
        # Whoever runs the tests in the background may ignore SIGINT; a program that is started does not.
        process = subprocess.Popen(
            command(tmp_path, "--once", file),
            stderr=stream,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
    try:
        until(lambda: log.read_text().count(f"Waiting for Kafka at {NOWHERE}") == 2, seconds=60)
        process.send_signal(number)
        assert code == process.wait(15)
    finally:
        process.kill()
        process.wait()
    assert "headrace: stopping; once more ends it at once." in log.read_text().splitlines()
    assert "has failed" not in log.read_text()
    assert "worker=A->B" in log.read_text()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"clusters": None}, "clusters: No clusters are named."),
        ({"clusters": "A, B, A"}, "clusters: A is named twice"),
        ({"A.bootstrap.servers": None}, "A.bootstrap.servers: The cluster A has no address"),
        ({"mirror.on.lots": "fail"}, "mirror.on.lots: There is no such setting. Did you mean"),
        ({"A->B.enabled": "yes"}, "A->B.enabled: yes is neither true nor false."),
        ({"A->B.enabled": "false", "B->A.enabled": "false"}, "No source->target replication"),
        (
            {
                "clusters": "us.west, B",
                "us.west.bootstrap.servers": NOWHERE,
                "us.west->B.enabled": "true",
            },
            "us.west",
        ),
    ],
)
def test_a_file_that_cannot_run_is_refused(
    shell: Shell, tmp_path: Path, changes: dict[str, str | None], told: str
) -> None:
    """Before anything is connected, with the file, the key and what to do."""
    file = written(tmp_path, **changes)
    said = shell.failed("mirror", file)
    assert f"headrace: {file} has " in said
    assert told in said


def test_a_mirror_that_has_nothing_to_do_fails(shell: Shell, tmp_path: Path) -> None:
    """It would look as if everything was copied."""
    only_heartbeats = {
        "A->B.enabled": None,
        "B->A.enabled": None,
        "emit.heartbeats.enabled": "true",
    }
    file = written(tmp_path, **only_heartbeats)
    said = shell.failed("mirror", "--once", file)
    assert "No flow has anything to do" in said
    assert "Enable one, as in A->B.enabled = true." in said


def test_a_flow_that_is_set_twice_is_refused(shell: Shell, tmp_path: Path) -> None:
    """The last line would win without a word."""
    file = written(tmp_path)
    file.write_text(f"{file.read_text()}A->B.enabled=false\n")
    assert "A->B.enabled: The file has it more than once." in shell.failed("mirror", file)


def test_unknown_keys_are_named_and_do_not_stop_it(tmp_path: Path) -> None:
    """MirrorMaker takes such a file."""
    done = ended(tmp_path, "--once", written(tmp_path, colour="red", **{"A->C.topics": "x"}))
    assert "The configuration 'colour' was supplied but isn't a known config." in done.stderr
    assert "clusters does not have C" in done.stderr
    assert "The flow A->B has failed" in done.stderr


def test_only_the_flows_to_some_clusters_run(tmp_path: Path) -> None:
    """As in MirrorMaker's own command."""
    done = ended(tmp_path, written(tmp_path), "--clusters", "A")
    assert "The flow B->A has failed" in done.stderr
    assert "A->B" not in done.stderr


def test_a_cluster_that_no_flow_goes_to_is_refused(shell: Shell, tmp_path: Path) -> None:
    """It may be misspelt."""
    assert "the target C" in shell.failed("mirror", "--clusters", "A,C", written(tmp_path))


def test_a_folder_that_is_not_there_is_not_created(shell: Shell, tmp_path: Path) -> None:
    """Its name may be misspelt, and the flows' history is elsewhere."""
    said = shell.failed("mirror", written(tmp_path), "--state", tmp_path / "stats")
    assert f"--state: The folder {tmp_path}/stats does not exist." in said


def test_a_listener_that_is_taken_is_refused(shell: Shell, tmp_path: Path) -> None:
    """Before either of them runs."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file = written(tmp_path, **{"B->A.listeners": f"http://127.0.0.1:{port}"})
        said = shell.failed("mirror", file, "--state", tmp_path)
    assert "listeners" in said
    assert "has failed" not in said


def test_state_files_are_beside_other_workers_files() -> None:
    """One folder for each file, one file for each flow, whatever their names hold."""
    folder = state_folder(Path("/etc/mm2.properties"), None, {"HOME": "/home/x"})
    assert folder.parent == Path("/home/x/.local/state/headrace")
    assert folder.name.startswith("mm2-")
    assert folder != state_folder(Path("/opt/mm2.properties"), None, {"HOME": "/home/x"})
    assert Path("/var") == state_folder(Path("x"), Path("/var"), os.environ)
    assert Path("/var/A->B.db") == state_file(Path("/var"), "A->B")
    assert Path("/var/a%2Fb->c.db") == state_file(Path("/var"), "a/b->c")


def test_words_are_completed() -> None:
    """Of commands and of their options; a file is the shell's to complete."""
    assert ["plain,mirror"] == words("headrace", "mir")
    assert ["plain,status"] == words("headrace", "mirror", "st")
    assert ["plain,--every"] == words("headrace", "mirror", "status", "--e")


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[OpenedFlow]:
    """One to B, not started."""
    file = MirrorFile.read(written(tmp_path))
    with ExitStack() as opened:
        workers = flow_workers(file, file.towards(["B"]))
        [flow] = mirror_process.opened_flows(workers, tmp_path, opened, once=True)
        yield flow


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("error", "told"), [(SystemExit(0), "no known reason"), (KeyError("x"), "KeyError: 'x'")]
)
def test_a_flow_that_ends_for_any_other_reason_has_failed(
    flow: OpenedFlow, monkeypatch: pytest.MonkeyPatch, error: BaseException, told: str
) -> None:
    """No thread ends unseen."""

    def serving(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(mirror_process, "serving", serving)
    plane = DataPlane.shared(ThreadEngine())
    running = mirror_process.RunningFlow(flow, plane, lambda _: None, once=True)
    assert mirror_process.run_flows([running], lambda: False)
    assert told in str(running.failure)


@pytest.mark.parametrize(
    ("is_asked", "level", "said"),
    [
        (True, logging.WARNING, "was stopped, and has not copied everything"),
        (False, logging.ERROR, "has failed, and does not run any more"),
    ],
)
def test_a_stop_is_no_error_although_a_partition_has_stopped_before(
    flow: OpenedFlow,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_asked: bool,
    level: int,
    said: str,
) -> None:
    """The last line says what was left out, and so does the exit code."""
    running = mirror_process.RunningFlow(
        flow, DataPlane.shared(ThreadEngine()), lambda _: None, once=False
    )

    def wait_for_failure() -> list[str]:
        if is_asked:
            running.ask_to_stop()
        return ["source"]

    herder = SimpleNamespace(
        start_only=lambda _: None,
        ready=lambda: None,
        wait_for_failure=wait_for_failure,
        delay=None,
        ask_to_stop=lambda: None,
        refuse_waiting=lambda: None,
    )
    monkeypatch.setattr(mirror_process, "serving", lambda *_, **__: nullcontext(herder))
    running.start()
    running.join(30)

    assert "its source failed, as logged above" == running.failure
    [last] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert (level, f"The flow A->B {said}: {running.failure}") == (last.levelno, last.getMessage())


def test_a_flow_that_does_not_copy_everything_is_reported_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It runs on, and nobody may forget what it leaves out."""
    monkeypatch.setattr(mirror_process, "_REMIND_SECONDS", 0.0)
    asked = iter([False, True])
    flow: Any = SimpleNamespace(
        name="A->B",
        grace=0.0,
        has_ended=False,
        failure=None,
        failing=["source"],
        delay=None,
        start=lambda: None,
        ask_to_stop=lambda: None,
        join=lambda _: None,
    )

    mirror_process.run_flows([flow], lambda: next(asked))

    reminded, left = caplog.messages
    assert "The flow A->B does not copy everything: source failed, as logged above" == reminded
    assert "The flow A->B has not ended in time." in left


class LateFlow:
    """One whose target is not reached in time, if there is a *delay*."""

    grace = 0.0
    failure: str | None = None
    failing = ()

    def __init__(self, name: str, delay: Exception | None = None) -> None:
        self.name = name
        self.delay = delay
        self.has_ended = False

    def start(self) -> None:
        """Nothing."""

    def give_up(self) -> None:
        """Fail with the delay."""
        if self.delay is not None:
            self.failure, self.has_ended = str(self.delay), True

    def ask_to_stop(self) -> None:
        """At once."""
        self.has_ended = True

    def join(self, seconds: float) -> None:
        """Nothing."""


def test_a_late_flow_is_reported_until_it_runs_and_is_then_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once, however often it is looked at."""
    late: Any = LateFlow("A->B", ConnectError("B is away."))
    other: Any = LateFlow("B->A")
    looks = iter(range(6))

    def looked() -> bool:
        look = next(looks)
        late.delay = late.delay if look < 3 else None
        return look == 5

    with caplog.at_level(logging.INFO):
        assert not mirror_process.run_flows([late, other], looked)

    told, runs = caplog.messages
    assert told == (
        "The flow A->B does not run: B is away. It is tried again as long as another flow runs."
    )
    assert "runs now" in runs


def test_late_flows_give_up_when_no_flow_runs_any_more() -> None:
    """The process would otherwise wait for clusters alone, and look as if it copied something."""
    late: Any = LateFlow("A->B", ConnectError("B is away."))
    done: Any = LateFlow("B->A")
    done.has_ended = True

    assert mirror_process.run_flows([late, done], lambda: False)
    assert "B is away." == late.failure


@pytest.mark.parametrize(
    ("error", "level", "failure"),
    [
        (ConnectError("away"), logging.INFO, None),
        (KeyError("x"), logging.ERROR, "KeyError: 'x'"),
    ],
)
def test_what_a_flow_meets_while_it_is_stopped_is_logged(
    flow: OpenedFlow,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    error: Exception,
    level: int,
    failure: str | None,
) -> None:
    """That Kafka was not reached by then is no failure; what no one expects is."""
    running = mirror_process.RunningFlow(
        flow, DataPlane.shared(ThreadEngine()), lambda _: None, once=False
    )

    def serving(*_: object, **__: object) -> None:
        running.ask_to_stop()
        raise error

    monkeypatch.setattr(mirror_process, "serving", serving)
    with caplog.at_level(logging.INFO):
        running.start()
        running.join(30)

    assert failure == running.failure
    first = caplog.records[0]
    assert level == first.levelno
    assert str(error) in caplog.text
    assert (level == logging.ERROR) == (first.exc_info is not None)


@pytest.mark.parametrize(("once", "reached_by"), [((), "--url "), (("--once",), "--mirror ")])
def test_a_flow_is_reached_by_its_listener_only_where_that_is_open(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    once: tuple[str, ...],
    reached_by: str,
) -> None:
    """With --once it is not."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = written(tmp_path, **{"B->A.listeners": f"http://127.0.0.1:{port}"})
    told = dict[str, str]()

    def running(
        flow: OpenedFlow, *_: object, command_options: str, **__: object
    ) -> SimpleNamespace:
        told[flow.worker.name] = command_options
        return SimpleNamespace(name=flow.worker.name)

    monkeypatch.setattr(mirror, "RunningFlow", running)
    monkeypatch.setattr(mirror, "run_flows", lambda *_: False)

    assert 0 == shell("mirror", *once, file, "--state", tmp_path).code

    assert told["A->B"].startswith("--mirror ")
    assert told["B->A"].startswith(reached_by)
