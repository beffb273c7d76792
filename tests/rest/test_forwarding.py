"""Requests that another worker of the group answers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from headrace.herder.errors import ElsewhereError, NotFoundError
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.fake_herder import FakeHerder

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server for a herder, with settings; its URL."""
    with ExitStack() as opened:

        def started(herder: FakeHerder, **props: str) -> str:
            given = {name.replace("_", "."): value for name, value in props.items()}
            server = RestServer(
                herder, RestConfig.parse({"listeners": "http://127.0.0.1:0", **given})
            )
            server.start()
            opened.callback(server.close)
            return server.url

        yield started


def following(leader: str) -> FakeHerder:
    """A herder that sends everything to *leader*."""

    def elsewhere() -> None:
        raise ElsewhereError("Only the leader of the group 'g' can do this.", url=leader)

    return FakeHerder(trouble=elsewhere)


CONNECTOR = {"name": "c/d", "config": {"connector.class": "X"}}


def test_the_leader_answers_and_the_follower_catches_up(serve: Serve) -> None:
    """With its status, and the follower's own address in the place of what was created."""
    leader = FakeHerder()
    follower = following(serve(leader))
    url = serve(follower)

    created = httpx.post(f"{url}connectors", json=CONNECTOR)
    replaced = httpx.put(f"{url}connectors/c%2Fd/config", json=CONNECTOR["config"])
    deleted = httpx.delete(f"{url}connectors/c%2Fd")

    assert (201, f"{url}connectors/c%2Fd") == (created.status_code, created.headers["location"])
    assert "c/d" == created.json()["name"]
    assert 200 == replaced.status_code
    assert (204, b"") == (deleted.status_code, deleted.content)
    assert {} == leader.configs
    assert 3 == follower.caught_up


def test_what_the_leader_refuses_is_refused_in_its_words(serve: Serve) -> None:
    """Nothing was changed that the follower would have to see."""

    def missing() -> None:
        raise NotFoundError("Connector c not found")

    follower = following(serve(FakeHerder(trouble=missing)))
    answer = httpx.put(f"{serve(follower)}connectors/c/stop")

    assert (404, {"error_code": 404, "message": "Connector c not found"}) == (
        answer.status_code,
        answer.json(),
    )
    assert 0 == follower.caught_up


def test_a_request_is_sent_on_twice_at_most(serve: Serve) -> None:
    """Leaders change; a request that goes round in a circle ends."""
    leader = FakeHerder()
    second = serve(following(serve(leader)))
    first = serve(following(second))
    too_far = serve(following(first))

    assert httpx.post(f"{first}connectors", json=CONNECTOR).is_success
    refused = httpx.post(f"{too_far}connectors", json={**CONNECTOR, "name": "e"})
    assert 409 == refused.status_code
    assert "conflicting operation (e.g. worker rebalance)" in refused.json()["message"]
    assert ["c/d"] == list(leader.configs)
    assert 409 == httpx.post(f"{first}connectors?forward=false", json=CONNECTOR).status_code


def test_who_asks_is_known_to_the_leader(serve: Serve, tmp_path: Path) -> None:
    """By the same login; other parameters of the request go with it."""
    users = tmp_path / "users"
    users.write_text("ada=secret\n")
    login = {
        "rest_extension_classes": (
            "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
        ),
        "rest_basic_auth_credentials_file": str(users),
    }
    leader = FakeHerder(configs={"c": {"connector.class": "X", "name": "c"}})
    url = serve(following(serve(leader, **login)), **login)
    authorization = "Basic " + base64.b64encode(b"ada:secret").decode()

    answer = httpx.patch(
        f"{url}connectors/c/offsets?dry_run=true",
        json={"offsets": [{"partition": {"p": 1}, "offset": {"o": 1}}]},
        headers={"Authorization": authorization},
    )

    assert answer.is_success, answer.text
    assert ["ada"] == leader.requesters
    assert httpx.delete(f"{url}connectors/c").status_code == 401


def test_a_leader_that_does_not_answer_is_named(serve: Serve) -> None:
    """It may have just ended; the group will have another one."""
    answer = httpx.put(f"{serve(following('http://127.0.0.1:1/'))}connectors/c/pause")

    assert 409 == answer.status_code
    assert "The worker at http://127.0.0.1:1/ does not answer" in answer.json()["message"]


class Proxy(BaseHTTPRequestHandler):
    """What stands in front of a worker that is away, and answers in its own form."""

    def do_PUT(self) -> None:
        """A page."""
        self.send_response(502)
        self.end_headers()
        self.wfile.write(b"<html>Bad gateway</html>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as the library calls it)
        """Nothing."""


def test_what_is_no_answer_of_a_worker_is_a_conflict(serve: Serve) -> None:
    """Such as a page of a proxy: the request may be sent again, and nothing was changed that would have to be seen."""
    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        Thread(target=proxy.handle_request, daemon=True).start()
        follower = following(f"http://127.0.0.1:{proxy.server_port}/")
        answer = httpx.put(f"{serve(follower)}connectors/c/stop")

    assert 409 == answer.status_code
    assert "is no worker (HTTP 502" in answer.json()["message"]
    assert 0 == follower.caught_up
