"""Commands that call a worker: which one, as which user, and what they print when it does not answer properly."""

from __future__ import annotations

import http.server
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.conftest import Shell, Worker
from doubles.puppets import PLANNED
from headrace.cli.main import outcome
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from herder.stage import request
from rest.certificates import certificate


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Another server, which answers all requests alike, and the paths that were requested."""
    requests = list[str]()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            requests.append(f"{self.command} {self.path}")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_DELETE = do_OPTIONS = answer  # noqa: N815 - names of the standard library

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


def test_a_worker_that_is_not_there_is_reported_with_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """One sentence, and exit code 1."""
    monkeypatch.setenv("HEADRACE_URL", "http://127.0.0.1:1")

    assert 1 == outcome(["connectors", "list"])
    shown = capsys.readouterr().err
    assert shown.startswith("headrace: The worker at http://127.0.0.1:1 cannot be reached: ")
    assert shown.endswith(
        ". Start one with 'headrace run' or 'headrace worker', or choose another with --url or HEADRACE_URL.\n"
    )


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        (200, b"<html>", "HTTP 200, which is not JSON"),
        (502, b"<html>", "HTTP 502, which is not JSON"),
        (500, b"{}", "HTTP 500 without a message"),
        (200, b'{"offsets": 1}', "Expected `array`"),
    ],
)
def test_a_stranger_is_reported(shell: Shell, status: int, body: bytes, shown: str):
    """Whatever it answers is no offset."""
    with answering(status, body) as (url, _):
        error = shell.failed("offsets", "show", "c", "--url", url)

    assert f"The server at {url} is not a worker of headrace or Kafka Connect: " in error
    assert shown in error


def test_no_dry_run_is_asked_of_who_would_do_it(shell: Shell):
    """Kafka Connect passes over parameters that it does not know."""
    with answering(404, b'{"error_code":404,"message":"HTTP 404 Not Found"}') as (url, requests):
        shown = shell.failed("offsets", "reset", "c", "--dry-run", "--url", url)

    assert "does not support dry runs" in shown
    assert ["OPTIONS /connectors/any/offsets/history"] == requests


def test_a_password_is_taken_from_the_environment_or_asked_for(
    shell: Shell, worker: Worker, url_for_users: str, monkeypatch: pytest.MonkeyPatch
):
    """The history has the user; without one the worker's refusal says what to do."""
    monkeypatch.setenv("HEADRACE_PASSWORD", "secret")
    worker.put(a=1)
    worker.stop()
    there = ("--url", url_for_users)
    shown = shell.failed("offsets", "reset", "c", *there)
    shell.done("offsets", "reset", "c", *there, "--user", "ann")
    monkeypatch.delenv("HEADRACE_PASSWORD")
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _: "wrong")
    wrong = shell("offsets", "show", "c", *there, "--user", "ann")

    assert "headrace: User cannot access the resource. Give a user with --user; " in shown
    assert (1, True) == (wrong.code, "User cannot access the resource." in wrong.err)
    assert "ann  reset" in shell.done("offsets", "history", "c")


def test_a_worker_with_tls_is_asked(
    shell: Shell, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Once its authority is trusted; before that nothing is sent to it."""
    ours = certificate()
    (tmp_path / "ours.pem").write_text(ours.pem)
    settings = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": ours.key_pem(),
        "ssl.keystore.certificate.chain": ours.pem,
    }
    server = RestServer(worker.herder, RestConfig.parse(settings))
    server.start()
    try:
        shown = shell.failed("connectors", "list", "--url", server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ours.pem"))
        listed = shell.done("connectors", "list", "--url", server.url)
    finally:
        server.close()

    assert "CERTIFICATE_VERIFY_FAILED" in shown
    assert "in the variable SSL_CERT_FILE" in shown
    assert "Start one" not in shown
    assert PLANNED in listed


def test_a_refusal_in_words_of_kafka_connect_is_reported(shell: Shell):
    """Its 401 is text, and the message has what to do here."""
    with answering(401, b"User cannot access the resource.") as (url, _):
        shown = shell.failed("connectors", "list", "--url", url)

    assert "headrace: User cannot access the resource. Give a user with --user; " in shown


def test_what_only_headrace_can_do_is_reported_of_another_worker(shell: Shell):
    """Kafka Connect's own answers what any wrong path gets."""
    with answering(404, b'{"error_code":404,"message":"HTTP 404 Not Found"}') as (url, requests):
        shown = shell.failed("offsets", "history", "c", "--url", url)

    assert f"headrace: HTTP 404 Not Found. The worker at {url} does not support this" in shown
    assert ["GET /connectors/c/offsets/history"] == requests


@pytest.mark.parametrize("url", ["", "x", "ftp://x", "http://", "http://h:x", "http://h/?a"])
def test_a_url_that_is_none_is_wrong_usage(shell: Shell, url: str):
    """Exit code 2."""
    assert "Invalid value for '--url'" in shell.failed("connectors", "list", "--url", url, code=2)


def test_a_password_in_a_url_is_refused_and_not_repeated(shell: Shell):
    """It would be in the lists of processes, and in errors."""
    shown = shell.failed("connectors", "list", "--url", "http://ann:hunter2@h", code=2)

    assert "it contains a user" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell: Shell, name: str):
    """What the shell reads names the command, and the variable that requests words."""
    assert "_HEADRACE_COMPLETE" in shell.done("completion", name)


def words(*typed: str) -> list[str]:
    """What bash is given to complete what has been typed."""
    words = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "headrace"],
        env={**os.environ, **words, "_HEADRACE_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


def test_words_are_completed():
    """Of commands and of those below them."""
    assert ["plain,offsets"] == words("headrace", "off")
    assert ["plain,reset"] == words("headrace", "offsets", "r")


def test_names_of_connectors_are_completed(worker: Worker):
    """Of the worker that the variable or the option names."""
    worker.herder.create(request("cellar"))
    worker.herder.create(request("attic"))

    assert ["plain,c", "plain,cellar"] == words("headrace", "connectors", "stop", "c")
    assert ["plain,attic"] == words("headrace", "offsets", "diff", "c", "a")


@pytest.mark.parametrize(("status", "body"), [(200, b"{}"), (200, b"?"), (401, b"no")])
def test_who_answers_otherwise_completes_nothing(status: int, body: bytes):
    """And nothing is printed into the line that is being written."""
    with answering(status, body) as (url, requests):
        assert [] == words("headrace", "connectors", "status", "--url", url, "c")
    assert ["GET /connectors"] == requests


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1:1"])
def test_no_one_completes_nothing(url: str):
    """Neither an address that is none, nor one where no one listens."""
    assert [] == words("headrace", "connectors", "status", "--url", url, "c")


def test_who_does_not_answer_is_not_waited_for():
    """A connection that is never taken up ends by itself, long before a request's own time is over."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        assert [] == words("headrace", "connectors", "status", "--url", url, "c")
    assert time.monotonic() - began < 20


def test_requests_are_not_logged(shell: Shell, caplog: pytest.LogCaptureFixture):
    """The client's library would log each of them on standard error."""
    caplog.set_level(logging.INFO)
    shell.done("connectors", "list")

    assert [] == [each for each in caplog.records if each.name.startswith("http")]
