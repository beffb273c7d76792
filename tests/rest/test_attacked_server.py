"""Clients that mean harm, or are gone without a word: the server stays small and answers the others."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from headrace.herder.requests import MOST_NAME_BYTES
from headrace.rest.config import RestConfig
from headrace.rest.connections import KEPT, Connections, OncePerMinute, most_connections
from headrace.rest.server import RestServer
from rest.certificates import certificate
from rest.fake_herder import FakeHerder
from waiting import until

Serve = Callable[..., RestServer]
MOST = KEPT + 4
CERTIFICATE = certificate()
TLS = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": CERTIFICATE.key_pem(),
    "ssl.keystore.certificate.chain": CERTIFICATE.pem,
}
SCHEMES = pytest.mark.parametrize("scheme", ["http", "https"])
POST = b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"


@pytest.fixture
def serve(herder: FakeHerder) -> Iterator[Serve]:
    """Start a server with few connections, which may be silent for a moment."""
    with ExitStack() as stack:

        def started(*, idle_seconds: float = 60, **props: str) -> RestServer:
            given = {name.replace("_", "."): value for name, value in props.items()}
            config = RestConfig.parse({"listeners": "http://127.0.0.1:0", **TLS, **given})
            connections = Connections(MOST, idle_seconds=idle_seconds)
            server = RestServer(herder, config, connections=connections)
            server.start()
            stack.callback(server.close)
            return server

        yield started


def trust() -> ssl.SSLContext:
    """TLS that takes the server's certificate."""
    return ssl.create_default_context(cadata=CERTIFICATE.pem)


def connected(server: RestServer, sent: bytes = b"", *, scheme: str = "http") -> socket.socket:
    """A connection through which *sent* has gone; without TLS as long as there is nothing to send."""
    opened = socket.create_connection(("127.0.0.1", server.ports[0]), timeout=10)
    if sent and scheme == "https":
        opened = trust().wrap_socket(opened, server_hostname="127.0.0.1")
    opened.sendall(sent)
    return opened


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; waits ten seconds for that."""
    try:
        while connection.recv(65536):
            continue
    except (ConnectionResetError, ssl.SSLEOFError):
        return True
    except TimeoutError:
        return False
    return True


@SCHEMES
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /health HT", id="half a line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n", id="half its headers"),
        pytest.param(POST + b'{"name"', id="half its body"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="a whole request"),
    ],
)
def test_a_silent_connection_is_closed(serve: Serve, sent: bytes, scheme: str):
    """Whatever it has sent before, and however far its handshake has got."""
    server = serve(idle_seconds=0.3, listeners=f"{scheme}://127.0.0.1:0")

    with connected(server, sent, scheme=scheme) as connection:
        assert is_closed(connection)


def test_half_a_handshake_is_closed(serve: Serve):
    """It has the same time as a request's line and headers."""
    server = serve(idle_seconds=0.3, listeners="https://127.0.0.1:0")

    with connected(server) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert is_closed(connection)


def test_the_server_closes_what_is_in_its_handshake(serve: Serve):
    """Its end does not wait for them."""
    server = serve(listeners="https://127.0.0.1:0")

    with connected(server) as connection:
        assert 200 == httpx.get(f"{server.url}health", verify=trust()).status_code
        server.close()
        assert is_closed(connection)


def test_headers_that_trickle_in_have_so_long_in_all(serve: Serve):
    """One byte now and then does not keep a connection."""
    server = serve(idle_seconds=0.5)
    closed = threading.Event()
    with connected(server, b"GET / HTTP/1.1\r\n") as connection:

        def trickle() -> None:
            while not closed.wait(0.1):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            assert is_closed(connection)
        finally:
            closed.set()
            thread.join()


def test_an_answer_that_takes_longer_is_waited_for(
    serve: Serve, herder: FakeHerder, monkeypatch: pytest.MonkeyPatch
):
    """A connection whose request is being answered is not silent."""
    server = serve(idle_seconds=0.2)
    plain = herder.connectors

    def slow() -> object:
        time.sleep(0.8)
        return plain()

    monkeypatch.setattr(herder, "connectors", slow)

    assert 200 == httpx.get(f"{server.url}connectors").status_code


@SCHEMES
def test_silent_connections_make_room(serve: Serve, caplog: pytest.LogCaptureFixture, scheme: str):
    """However many there are, requests are answered, and the log has one line."""
    server = serve(listeners=f"{scheme}://127.0.0.1:0")
    with caplog.at_level(logging.WARNING), ExitStack() as stack:
        opened = [stack.enter_context(connected(server)) for _ in range(5 * MOST)]

        assert 200 == httpx.get(f"{server.url}connectors", verify=trust()).status_code

        assert is_closed(opened[0])
    assert 1 == caplog.text.count("has been idle for longest is closed")
    assert f"There are {MOST - KEPT} connections, the maximum" in caplog.text
    assert f", less {KEPT} that are reserved for /health)" in caplog.text


def test_health_is_answered_when_all_connections_are_busy(
    serve: Serve, herder: FakeHerder, monkeypatch: pytest.MonkeyPatch
):
    """Others should retry later."""
    server = serve()
    release = threading.Event()
    stuck_requests = threading.Semaphore(0)
    plain = herder.connectors

    def stuck() -> object:
        stuck_requests.release()
        release.wait(20)
        return plain()

    monkeypatch.setattr(herder, "connectors", stuck)
    busy = b"GET /connectors HTTP/1.1\r\nHost: x\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(MOST - KEPT):
            stack.enter_context(connected(server, busy))
        stack.callback(release.set)
        # A connection whose request has not come yet would make room for the next one.
        for _ in range(MOST - KEPT):
            assert stuck_requests.acquire(timeout=10)

        def refused() -> bool:
            return 503 == httpx.get(server.url).status_code

        until(refused, seconds=10)
        assert 200 == httpx.get(f"{server.url}health").status_code


CROWDED = """
import resource, sys
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.fake_herder import FakeHerder

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
server = RestServer(FakeHerder(), RestConfig.parse(dict(each.split("=", 1) for each in sys.argv[1:])))
server.start()
print(*server.ports, flush=True)
sys.stdin.read()
server.close()
"""


def test_health_is_answered_with_few_descriptors_and_many_silent_connections(tmp_path: Path):
    """There are more connections than descriptors, and the log stays small."""
    props = {**TLS, "listeners": "http://127.0.0.1:0,https://127.0.0.1:0"}
    command = [sys.executable, "-c", CROWDED, *(f"{key}={each}" for key, each in props.items())]
    tests = Path(__file__).parents[1]
    log = tmp_path / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, cwd=tests, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.communicate)
        assert process.stdout is not None
        plain, secured = (int(each) for each in process.stdout.readline().split())
        for port in (plain, secured):
            for _ in range(400):
                opened = socket.create_connection(("127.0.0.1", port), timeout=10)
                stack.enter_context(opened)
            for url in (f"http://127.0.0.1:{plain}/", f"https://127.0.0.1:{secured}/"):
                answer = httpx.get(f"{url}health", verify=trust(), timeout=10)
                assert 200 == answer.status_code
    assert 0 == process.returncode
    assert len(log.read_text().splitlines()) <= 2


def test_the_limit_is_below_that_of_descriptors():
    """Kafka's clients and the state file need some."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert most_connections() < soft


def test_bodies_together_have_a_bound(serve: Serve):
    """What is beyond it is refused and not kept; when the others are through, it is taken."""
    server = serve(headrace_rest_max_body_bytes="4096")
    head = POST.replace(b"100", b"4000")
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(connected(server, head + b" " * 3900))

        def post() -> int:
            headers = {"Content-Type": "application/json"}
            return httpx.post(
                f"{server.url}connectors", content=b" " * 3000, headers=headers
            ).status_code

        until(lambda: 503 == post(), seconds=10)
    until(lambda: 503 != post(), seconds=10)


def test_the_bound_for_bodies_counts_those_of_admin_listeners(serve: Serve):
    """They are held by the same process."""
    server = serve(headrace_rest_max_body_bytes="4096", admin_listeners="http://127.0.0.1:0")
    head = POST.replace(b"100", b"4000")
    admin = f"http://127.0.0.1:{server.ports[1]}/admin/loggers/x"
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(connected(server, head + b" " * 3900))

        def put() -> int:
            headers = {"Content-Type": "application/json"}
            return httpx.put(admin, content=b" " * 3000, headers=headers).status_code

        until(lambda: 503 == put(), seconds=10)


def test_a_body_that_says_that_it_is_too_large_is_not_asked_for(serve: Serve):
    """Who waits for leave to send it hears that at once."""
    server = serve(headrace_rest_max_body_bytes="4096")
    head = POST.replace(b"100\r\n", b"5000\r\nExpect: 100-continue\r\n")

    with connected(server, head) as connection:
        assert b" 413 " in connection.recv(100)


def test_each_cause_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture):
    """The next line has the number of suppressed ones."""
    now = 0.0
    seldom = OncePerMinute(logging.getLogger("a.test"), lambda: now)
    for text in "aaab":
        seldom.warning(text)
    assert ["a", "b"] == caplog.messages
    now = 61.0

    seldom.warning("a")

    assert "a (2 similar lines were suppressed.)" == caplog.messages[-1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("%s: %s", "accept", "x"), ("%s: %s", "write", "x"), id="where"),
        pytest.param(
            ("%s: %s", "accept", OSError(24, "x")),
            ("%s: %s", "accept", OSError(5, "x")),
            id="errno",
        ),
        pytest.param(("%s", ValueError("x")), ("%s", KeyError("x")), id="type"),
    ],
)
def test_different_causes_are_each_logged(
    caplog: pytest.LogCaptureFixture, one: tuple[object, ...], other: tuple[object, ...]
):
    """Although they share the form of their line."""
    seldom = OncePerMinute(logging.getLogger("a.test"), lambda: 0)
    for text, *values in (one, other, one, other):
        seldom.warning(text, *values)

    assert 2 == len(caplog.messages)


def test_different_exceptions_of_requests_are_each_logged(caplog: pytest.LogCaptureFixture):
    """The web server logs all of them in the same words."""
    log = Connections(MOST).server_log
    for error in (ValueError("x"), KeyError("y"), ValueError("z")):
        log.error("Exception in ASGI application\n", exc_info=error)

    assert ["x", "'y'"] == [str(each.exc_info[1]) for each in caplog.records if each.exc_info]


def test_what_different_loop_failures_say_is_logged(caplog: pytest.LogCaptureFixture):
    """Two of the same error number are one cause only where they happen in the same place."""
    connections, loop = Connections(MOST), asyncio.new_event_loop()
    for message in ("accept", "write", "accept"):
        connections.loop_failed(loop, {"message": message, "exception": OSError(24, "Too many")})
    loop.close()

    assert ["accept: [Errno 24] Too many", "write: [Errno 24] Too many"] == caplog.messages


def test_causes_that_are_remembered_have_a_bound(caplog: pytest.LogCaptureFixture):
    """One that was forgotten is logged again."""
    seldom = OncePerMinute(logging.getLogger("a.test"), lambda: 0)
    for number in (*range(1001), 0):
        seldom.warning(str(number))

    assert 1002 == len(caplog.messages)


@pytest.mark.parametrize("depth", [101, 500, 1_000, 100_000])
@pytest.mark.parametrize("path", ["/connectors", "/connectors/c/offsets"])
def test_what_is_nested_too_deeply_is_refused(client: httpx.Client, path: str, depth: int):
    """In the same words however deep it is."""
    body = b'{"offsets":' + b"[" * depth + b"]" * depth + b"}"
    request = client.post if path == "/connectors" else client.patch

    answer = request(path, content=body, headers={"Content-Type": "application/json"})

    assert 400 == answer.status_code
    assert "nested deeper than 100 levels" in answer.json()["message"]


@pytest.mark.parametrize("character", ["n", "%", "ü", "😀"])
def test_a_name_is_as_long_as_a_url_takes(client: httpx.Client, character: str):
    """Up to the bound whatever is created can be requested and deleted; beyond it nothing is created."""
    size = len(quote(character, safe=""))
    longest = character * (MOST_NAME_BYTES // size)
    config = {"connector.class": "FileStreamSource", "file": "x", "topic": "t"}

    assert 201 == client.post("/connectors", json={"name": longest, "config": config}).status_code
    path = f"/connectors/{quote(longest, safe='')}"
    assert 200 == client.get(path).status_code
    assert 204 == client.delete(path).status_code

    for name in (longest + character, character * 300_000):
        refused = client.post("/connectors", json={"name": name, "config": config})
        assert 400 == refused.status_code
        assert len(refused.content) < 1000
    assert 400 == client.put(f"{path}{quote(character)}/config", json=config).status_code
