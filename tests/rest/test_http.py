"""What HTTP itself refuses, through a real socket: paths, methods, media types, bodies, and time."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from http.client import HTTPConnection
from itertools import pairwise

import httpx
import pytest

from headrace.connect.errors import ConfigError
from headrace.herder.answers import Health, WorkerHealth
from headrace.herder.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServerError,
)
from rest.conftest import Serve
from rest.fake_herder import FakeHerder
from waiting import until

JSON = {"Content-Type": "application/json"}
NO_BODY = ["/connectors/c/pause", "/connectors/c/resume", "/connectors/c/stop"]
TAKES_BODY = [
    ("POST", "/connectors"),
    ("PUT", "/connectors/c/config"),
    ("PATCH", "/connectors/c/config"),
    ("PATCH", "/connectors/c/offsets"),
    ("PUT", "/connector-plugins/a.Files/config/validate"),
    ("PUT", "/admin/loggers/some"),
]


def is_error(answer: httpx.Response, status: int, message: str | None = None) -> bool:
    """Whether *answer* is an error of Kafka Connect's form, with its type."""
    body = answer.json()
    assert ["error_code", "message"] == list(body)
    assert "application/json" == answer.headers["content-type"]
    assert (status, status) == (answer.status_code, body["error_code"]), answer.text
    return message is None or message == body["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/connectors/c/other",
        "/connectors/c/tasks-config",
        "/connectors/c/tasks/0",
        "/connectors/c/tasks/x/status",
        "/connectors/c/tasks/1.5/status",
        "/connectors/c/tasks/99999999999/status",
        "/connectors/c/tasks/%D9%A1/status",
    ],
)
def test_unknown_paths(client: httpx.Client, path: str):
    """404 in the words of Kafka Connect's framework; a task's number has to be one."""
    assert is_error(client.request("GET", path), 404, "HTTP 404 Not Found")


def test_a_slash_at_the_end_does_not_count(client: httpx.Client):
    """As in Kafka Connect."""
    assert 200 == client.get("/connectors/").status_code


def asked_for(client: httpx.Client, target: str) -> bytes:
    """What is answered to a target that is sent as it stands."""
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as raw:
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: raw.recv(4096), b""))


@pytest.mark.parametrize("place", ["http://some.host", "HTTPS://[::1]:99", "http://x:8083"])
def test_a_target_may_be_a_whole_url(client: httpx.Client, place: str):
    """A client that thinks it speaks to a proxy sends one; its path and its query count."""
    assert asked_for(client, f"{place}/connectors").endswith(b'\r\n\r\n["c"]')
    assert b'"info":{' in asked_for(client, f"{place}/connectors?expand=info")
    assert b'{"version":' in asked_for(client, place)


@pytest.mark.parametrize(
    "path",
    [
        *("/connectors/%zz", "/connectors/%", "/connectors/%ff"),
        *("http://", "http:///connectors", "http://u:p@x/connectors", "http://x//connectors"),
        *("//", "//connectors", "/connectors//", "/connectors//status", "/admin/loggers//"),
        *("/connectors/a%0Ab", "/connectors/%00/status", "/admin/loggers/a%7F"),
    ],
)
def test_paths_that_name_nothing(client: httpx.Client, path: str):
    """400, whatever the path would have been: wrongly encoded, with two slashes, or with a control character."""
    answer = asked_for(client, path)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'{"error_code":400,"message":"HTTP 400 Bad Request' in answer


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/connectors", "HEAD, POST, GET, OPTIONS"),
        ("POST", "/connectors/c", "HEAD, GET, DELETE, OPTIONS"),
        ("GET", "/connectors/c/pause", "PUT, OPTIONS"),
        ("HEAD", "/connectors/c/pause", "PUT, OPTIONS"),
        ("TRACE", "/", "HEAD, GET, OPTIONS"),
        ("DELETE", "/connectors/c/config", "HEAD, GET, PUT, PATCH, OPTIONS"),
        ("PUT", "/connectors/c/tasks", "HEAD, POST, GET, OPTIONS"),
        ("GET", "/connectors/c/fence", "PUT, OPTIONS"),
    ],
)
def test_wrong_methods(client: httpx.Client, method: str, path: str, allow: str):
    """405 and the methods that there are."""
    answer = client.request(method, path)

    assert allow == answer.headers["allow"]
    assert 405 == answer.status_code
    assert method == "HEAD" or is_error(answer, 405, "HTTP 405 Method Not Allowed")


def test_options_and_head(client: httpx.Client):
    """OPTIONS lists the methods as text; HEAD is GET without its body."""
    options, head = client.options("/connectors"), client.head("/connectors")

    assert (200, "HEAD, POST, GET, OPTIONS") == (options.status_code, options.text)
    assert options.headers["content-type"].startswith("text/plain")
    assert (200, b"", "5") == (head.status_code, head.content, head.headers["content-length"])
    assert is_error(client.options("/nothing"), 404)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/json", 200),
        ("application/*;q=0.1", 200),
        ("text/html, application/JSON; charset=utf-8", 200),
        ("", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("application/json;q=0, */*", 406),
        ("application/xml, text/plain", 406),
    ],
)
def test_accept(client: httpx.Client, accept: str, status: int):
    """There is only JSON to be had."""
    answer = client.get("/connectors", headers={"Accept": accept})

    assert status == answer.status_code
    assert status == 200 or is_error(answer, 406, "HTTP 406 Not Acceptable")


@pytest.mark.parametrize(("method", "path"), TAKES_BODY)
@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "", None])
def test_wrong_content_types(
    client: httpx.Client, method: str, path: str, content_type: str | None
):
    """415 for a body that is not declared as JSON."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = client.request(method, path, content=b"{}", headers=headers)

    assert is_error(answer, 415, "HTTP 415 Unsupported Media Type")


@pytest.mark.parametrize("path", NO_BODY)
def test_content_type_counts_without_a_body(client: httpx.Client, path: str):
    """PUT of a state with another type is refused, without a type it is not."""
    assert is_error(client.put(path, headers={"Content-Type": "text/plain"}), 415)
    assert client.put(path).is_success
    assert client.put(path, headers={"Content-Type": "application/json; charset=utf-8"}).is_success


@pytest.mark.parametrize(("method", "path"), TAKES_BODY)
@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"null", b"[]", b"7", b'"x"', b"{", b'{"a":', b"{'a':1}", b'{"a":NaN}', b"\xff{}"],
)
def test_bodies_that_are_no_object(
    client: httpx.Client, herder: FakeHerder, *, method: str, path: str, body: bytes
):
    """A missing body, malformed JSON and other JSON are 500 with a sentence, as in Kafka Connect."""
    answer = client.request(method, path, content=body, headers=JSON)

    assert is_error(answer, 500)
    assert answer.json()["message"]
    assert [] == herder.calls


@pytest.mark.parametrize(("method", "path"), TAKES_BODY)
def test_halves_of_characters_are_refused(client: httpx.Client, method: str, path: str):
    """No answer and no topic could hold them."""
    body = b'{"config":{"a":"\\ud83c"},"a":"\\ud83c","offsets":[{"partition":{"a":"\\ud83c"}}]}'

    assert is_error(client.request(method, path, content=body, headers=JSON), 500)


def test_deep_bodies_are_refused(client: httpx.Client):
    """They neither end the worker nor show a trace."""
    deep = b'{"config":' + b"[" * 100_000

    assert is_error(client.post("/connectors", content=deep, headers=JSON), 400)


@pytest.mark.parametrize("content", [{"a": {}}, {"a": [1]}, {"a": None, "b": {"c": "d"}}])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_nested_values_in_a_config(client: httpx.Client, method: str, content: object):
    """A configuration is a map of text."""
    answer = client.request(method, "/connectors/c/config", json=content)

    assert is_error(answer, 500)
    assert answer.json()["message"].startswith("Cannot deserialize value of type `String` from ")


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"more": 1}, 'Unrecognized field "more" (class CreateConnectorRequest), not marked as'),
        ({"name": []}, "Cannot deserialize value of type `String` from Array value"),
        ({"config": "x"}, "Cannot deserialize value of type `Map<String, String>` from String"),
        ({"config": None}, "The request has no configuration"),
        ({"initial_state": "ASLEEP"}, "Cannot construct instance of InitialState, problem: ASLEEP"),
        ({"initial_state": {}}, "Cannot deserialize value of type `String` from Object value"),
    ],
)
def test_wrong_fields_of_a_creation(
    client: httpx.Client, herder: FakeHerder, fields: dict[str, object], begins: str
):
    """500 with a sentence that names the field's fault; nothing is created."""
    answer = client.post("/connectors", json={"name": "n", "config": {}, **fields})

    assert is_error(answer, 500)
    assert answer.json()["message"].startswith(begins)
    assert [] == herder.calls


def test_huge_bodies(serve: Serve, herder: FakeHerder):
    """413 with the limit and how to raise it, also for a body that is sent in pieces."""
    client = serve(headrace_rest_max_body_bytes="1024")
    body = json.dumps({"name": "n", "config": {"k": "v" * 2000}}).encode()

    answers = [
        client.post("/connectors", content=content, headers=JSON)
        for content in (body, (body[at : at + 100] for at in range(0, len(body), 100)))
    ]

    for answer in answers:
        assert is_error(answer, 413)
        assert "headrace.rest.max.body.bytes" in answer.json()["message"]
    assert [] == herder.calls


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError("bad"),
        ForbiddenError("Topic tracking is disabled."),
        NotFoundError("Unknown connector c"),
        ConflictError("Cannot complete request momentarily"),
        ServerError("Failed to start connector: c"),
    ],
)
def test_errors_of_the_herder(client: httpx.Client, herder: FakeHerder, error: BadRequestError):
    """Each with its status and its words."""

    def trouble() -> None:
        raise error

    herder.trouble = trouble

    assert is_error(client.put("/connectors/c/pause"), error.status, str(error))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("out of luck"), "out of luck"),
        (KeyError(), None),
        (StopIteration("over"), "coroutine raised StopIteration"),
        (ConfigError([("k", "wrong")], where="It"), "It has 1 problem:\n  k: wrong"),
    ],
)
def test_errors_that_no_one_foresaw(
    client: httpx.Client,
    herder: FakeHerder,
    caplog: pytest.LogCaptureFixture,
    *,
    error: Exception,
    message: str | None,
):
    """500 with the error's message or null, and a line in the log; the server continues."""

    def trouble() -> None:
        raise error

    herder.trouble = trouble
    answer = client.get("/connectors/c")

    assert is_error(answer, 500)
    assert message == answer.json()["message"]
    assert "GET /connectors/c failed" in caplog.text
    assert 200 == client.get("/health").status_code


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (None, "Request timed out"),
        ("The worker is currently napping.", "Request timed out. The worker is currently napping."),
    ],
)
def test_requests_that_take_too_long(
    serve: Serve, herder: FakeHerder, stage: str | None, message: str
):
    """500 with what the worker is doing; others are answered meanwhile."""
    herder.found_stage = stage
    go_on = threading.Event()
    herder.trouble = go_on.wait
    client = serve(request_seconds=0.3)

    try:
        assert is_error(client.get("/connectors"), 500, message)
        assert 200 == client.get("/health").status_code
    finally:
        go_on.set()


def test_many_requests_at_one_time(serve: Serve, herder: FakeHerder):
    """More than there are turns for wait, and health is answered all the same."""
    go_on = threading.Event()
    herder.trouble = go_on.wait
    client = serve()
    statuses = list[int]()
    place = (client.base_url.host, client.base_url.port)

    def ask() -> None:
        connection = HTTPConnection(*place, timeout=20)
        connection.request("GET", "/connectors")
        statuses.append(connection.getresponse().status)
        connection.close()

    clients = [threading.Thread(target=ask) for _ in range(130)]
    for each in clients:
        each.start()
    until(lambda: sum(t.name == "headrace-request" for t in threading.enumerate()) >= 100)

    assert 200 == client.get("/health").status_code
    go_on.set()
    for each in clients:
        each.join()
    assert [200] * 130 == statuses


@pytest.mark.parametrize(
    ("health", "status"),
    [(Health.HEALTHY, 200), (Health.STARTING, 503), (Health.UNHEALTHY, 500)],
)
def test_health(client: httpx.Client, herder: FakeHerder, health: Health, status: int):
    """KIP-1017's statuses, and the herder's sentence."""
    herder.found_health = WorkerHealth(status=health, message="So it is.")
    answer = client.get("/health")

    assert (status, f'{{"status":"{health.value}","message":"So it is."}}') == (
        answer.status_code,
        answer.text,
    )


def test_access_log(client: httpx.Client, caplog: pytest.LogCaptureFixture):
    """One line for each request, with its status, its size and its time."""
    with caplog.at_level(logging.INFO, "headrace.rest.access"):
        client.get("/connectors?a=b", headers={"User-Agent": 'a"b'})

        # A request of an earlier test may be written down only now.
        def of_this() -> list[str]:
            return [each for each in caplog.messages if "?a=b" in each]

        until(of_this)

    (line,) = of_this()
    assert line.startswith("127.0.0.1 - - [")
    assert '"GET /connectors?a=b HTTP/1.1" 200 5 "-" "a\\"b" ' in line


@pytest.mark.parametrize(("level", "told"), [(logging.INFO, 0), (logging.DEBUG, 1)])
def test_requests_for_the_health_are_logged_at_debug_level(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, level: int, told: int
):
    """Something asks for it all the time where a worker is watched."""
    with caplog.at_level(level, "headrace.rest.access"):
        client.get(f"/health?of={level}")
        client.get(f"/connectors?after={level}")
        until(lambda: [each for each in caplog.messages if f"?after={level}" in each])

    assert told == len([each for each in caplog.messages if f"?of={level}" in each])


def test_an_idle_connection_does_not_hold_the_server(serve: Serve):
    """A pipelined pair of requests is answered in order on one connection."""
    client = serve()
    began = time.monotonic()
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /connectors HTTP/1.1\r\nHost: x\r\n")
        raw.sendall(b"Connection: close\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(4096), b""))

    found = [answer.index(b'"version"'), answer.index(b'["c"]')]
    assert all(first < second for first, second in pairwise(found))
    assert time.monotonic() - began < 10
