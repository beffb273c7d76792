"""``/admin/workers``: what a group's workers are doing, and how one of them leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from socket import socket

import httpx
import pytest

from headrace.herder.answers import WorkerState
from headrace.herder.errors import ElsewhereError
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.conftest import Serve
from rest.fake_herder import WORKER, FakeHerder, worker

IPV6 = "[::1]:8083"


@pytest.fixture
def herder(herder: FakeHerder) -> FakeHerder:
    """One of a group of two."""
    leader = worker(is_leader=True, connectors=["a", "b"])
    herder.group = {WORKER: leader, IPV6: worker(IPV6, state=WorkerState.ARRIVING)}
    return herder


def test_workers_are_listed(herder: FakeHerder, client: httpx.Client):
    """With all that is known of them."""
    first, second = client.get("/admin/workers").json()

    assert first == {
        "id": WORKER,
        "url": "http://10.0.0.5:8083/",
        "version": "1.2",
        "slots": 4,
        "is_leader": True,
        "state": "ACTIVE",
        "connectors": ["a", "b"],
    }
    assert (IPV6, "ARRIVING", []) == (second["id"], second["state"], second["connectors"])


@pytest.mark.parametrize(
    ("query", "stay"), [("", False), ("?stay=true", True), ("?stay=false", False)]
)
@pytest.mark.parametrize("path", [WORKER, "10.0.0.5%3A8083"])
def test_a_worker_is_asked_to_leave(
    herder: FakeHerder, client: httpx.Client, *, path: str, query: str, stay: bool
):
    """It is accepted, without a body: handing over takes its time."""
    answer = client.put(f"/admin/workers/{path}/relinquish{query}")

    assert (202, b"") == (answer.status_code, answer.content)
    assert [("relinquish", (WORKER, stay))] == herder.calls


def test_a_worker_is_taken_back(herder: FakeHerder, client: httpx.Client):
    """Also one whose address is of IPv6."""
    answer = client.put("/admin/workers/%5B::1%5D:8083/rejoin")

    assert (202, b"") == (answer.status_code, answer.content)
    assert [("rejoin", IPV6)] == herder.calls


def test_a_misspelt_switch_changes_nothing(herder: FakeHerder, client: httpx.Client):
    """A worker that is to stay would end otherwise."""
    answer = client.put(f"/admin/workers/{WORKER}/relinquish?stay=yes")

    assert 400 == answer.status_code
    assert "The parameter stay must be true or false, but is yes" == answer.json()["message"]
    assert [] == herder.calls


@pytest.mark.parametrize("word", ["relinquish", "rejoin"])
def test_unknown_workers(herder: FakeHerder, client: httpx.Client, word: str):
    """In the herder's words."""
    answer = client.put(f"/admin/workers/x:1/{word}")

    assert (404, "Unknown worker x:1.") == (answer.status_code, answer.json()["message"])


def test_the_leader_answers_for_others(herder: FakeHerder, serve: Serve):
    """With the parameters of the request, and in its words."""
    leader = serve()
    follower = FakeHerder(trouble=elsewhere(str(leader.base_url)))
    server = RestServer(follower, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
    server.start()
    try:
        with httpx.Client(base_url=server.url.rstrip("/"), timeout=20) as client:
            listed = client.get("/admin/workers")
            left = client.put(f"/admin/workers/{WORKER}/relinquish?stay=true")
            unknown = client.put("/admin/workers/x:1/rejoin")
    finally:
        server.close()

    assert [WORKER, IPV6] == [each["id"] for each in listed.json()]
    assert (202, b"") == (left.status_code, left.content)
    assert ("relinquish", (WORKER, True)) == herder.calls[0]
    assert (404, "Unknown worker x:1.") == (unknown.status_code, unknown.json()["message"])


def test_admin_listeners_do_not_send_on(herder: FakeHerder):
    """The other worker's are not known: it is asked by this one, and the brokers know the group."""
    listeners = {"listeners": "http://127.0.0.1:0", "admin.listeners": "http://127.0.0.1:0"}
    server = RestServer(herder, RestConfig.parse(listeners))
    server.start()
    main, admin = (f"http://127.0.0.1:{port}/admin/workers" for port in server.ports)
    try:
        done = [httpx.put(f"{admin}/{WORKER}/{each}") for each in ("relinquish", "rejoin")]
        herder.trouble = elsewhere("http://10.0.0.6:8083/")
        listed = [httpx.get(each) for each in (main, admin)]
    finally:
        server.close()

    assert [202, 202] == [each.status_code for each in done]
    assert 2 == herder.calls.count("signed")
    assert [404, 200] == [each.status_code for each in listed]
    assert ["ACTIVE", "ARRIVING"] == [each["state"] for each in listed[1].json()]


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_leader_that_does_not_answer_is_shown_as_such(
    herder: FakeHerder, monkeypatch: pytest.MonkeyPatch, *, is_frozen: bool
):
    """Its group has not missed it yet, and the brokers tell what each worker has. For one that takes connections it is not waited long."""
    monkeypatch.setattr("headrace.rest.resources.worker._LEADER_SECONDS", 0.5)
    with closing(socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        if is_frozen:
            unused.listen()
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        herder.group[WORKER] = worker(is_leader=True, url=url, connectors=["a"])
        herder.trouble = elsewhere(url)
        server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
        server.start()
        try:
            listed = httpx.get(f"{server.url}admin/workers")
        finally:
            server.close()

    assert 200 == listed.status_code
    assert ["UNREACHABLE", "ARRIVING"] == [each["state"] for each in listed.json()]
    assert ["a"] == listed.json()[0]["connectors"]


def elsewhere(url: str) -> Callable[[], None]:
    """The trouble of a follower."""

    def raised() -> None:
        raise ElsewhereError("Only the leader of the group 'g' can do this.", url=url)

    return raised
