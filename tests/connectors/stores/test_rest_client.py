"""Requests that are sent as they were made, and answers that are no answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.stores.connecting import Connecting
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectArchivedError,
    ObjectChangedError,
    ObjectGoneError,
    StoreUnavailableError,
)
from headrace.stores.rest.client import Request, RestClient
from headrace.stores.rest.errors import PASSING, Meanings, Refusal, error_of

MEANINGS = Meanings(
    passing=PASSING | {"Busy"},
    changed=frozenset({"412"}),
    gone=frozenset({"NoKey"}),
    bad_key=frozenset({"BadKey"}),
    archived=frozenset({"Archived"}),
    forbidden="Log in.",
    advice="Look.",
)


@pytest.fixture
def heard() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that says yes to each request, and the first lines that it heard."""
    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                try:
                    connection, _ = listening.accept()
                except TimeoutError:
                    continue
                with connection, connection.makefile("rb") as received:
                    lines.append(received.readline().decode().strip())
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", lines
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "path",
    ["/b/..", "/b/a%2F..%2Fb", "/b//a", "/b/%2e%7e", "/b/a/./b/../c", "/b/%C3%A9%F0%9F%98%80"],
)
def test_a_path_is_not_tidied_up(path: str, heard: tuple[str, list[str]]):
    """Else the request would be about another object."""
    address, lines = heard
    query = {"a b": "c&d=+/é"}
    response = RestClient(f"http://{address}", Connecting()).send(
        "here", Request(method="GET", path=path, query=query)
    )

    assert b"ok" == response.whole()
    assert f"GET {path}?a%20b=c%26d%3D%2B%2F%C3%A9 HTTP/1.1" == lines[0].replace(
        "%2E", "%2e"
    ).replace("%7E", "%7e")


def test_an_https_server_is_reached_through_the_proxy_of_the_environment(
    heard: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
):
    """Many networks have no other way out."""
    address, lines = heard
    monkeypatch.setenv("https_proxy", f"http://{address}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    client = RestClient("https://store.example", Connecting(connect_seconds=5, read_seconds=5))
    with pytest.raises(StoreUnavailableError, match="here"):
        client.send("here", Request(method="GET", path="/"))

    assert "CONNECT store.example:443 HTTP/1.1" == lines[0].replace("HTTP/1.0", "HTTP/1.1")


def test_a_query_is_in_no_error():
    """It may hold a signature."""
    client = RestClient("http://127.0.0.1:1", Connecting())
    request = Request(method="GET", path="/a", query={"sig": "very-secret"})
    with pytest.raises(StoreUnavailableError, match=r"^here: .*refused") as told:
        client.send("here", request)

    assert "very-secret" not in f"{told.value!r} {told.value.__cause__!r}"


@pytest.mark.parametrize(
    ("status", "code", "key", "kind"),
    [
        (503, "x", "a", StoreUnavailableError),
        (429, "x", None, StoreUnavailableError),
        (403, "Busy", "a", StoreUnavailableError),
        (501, "x", "a", TaskFailedError),
        (412, "x", "a", ObjectChangedError),
        (404, "NoKey", "a", ObjectGoneError),
        (404, "NoBucket", "a", TaskFailedError),
        (404, "NoKey", None, TaskFailedError),
        (400, "BadKey", "a", KeyNotRepresentableError),
        (409, "Archived", "a", ObjectArchivedError),
    ],
)
def test_an_answer_is_an_error_by_what_to_do_next(
    status: int, code: str, key: str | None, kind: type[Exception]
):
    """A code says more than a status; what is about no object cannot be gone."""
    refusal = Refusal(status=status, code=code, message="Why.")

    assert kind is type(error_of(("gs://b", key), "get", refusal, MEANINGS))


@pytest.mark.parametrize(("status", "advice"), [(401, "Log in."), (403, "Log in."), (400, "Look.")])
def test_advice_is_of_the_login_or_of_the_place(status: int, advice: str):
    """And what was asked and answered is told."""
    refusal = Refusal(status=status, code="Code", message="Why.")

    told = str(error_of(("gs://b", "k"), "get", refusal, MEANINGS))
    assert f"gs://b: 'k': get: {status} Why. (Code). {advice}" == told
