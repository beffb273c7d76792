"""Requests that another worker of the group answers."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from headrace.herder.errors import ElsewhereError, NotFoundError
from headrace.herder.request_signing import REQUESTER_HEADER
from headrace.rest.config import BASIC_AUTH, RestConfig
from headrace.rest.request import ApiRequest
from headrace.rest.server import RestServer
from rest.fake_herder import SESSION_KEY, FakeHerder

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
    """With its status, and the follower's own address in the place of what was created; what only reads has changed nothing."""
    leader = FakeHerder()
    follower = following(serve(leader))
    url = serve(follower)

    assert [] == httpx.get(f"{url}admin/workers").json()
    assert 0 == follower.caught_up
    created = httpx.post(f"{url}connectors", json=CONNECTOR)
    replaced = httpx.put(f"{url}connectors/c%2Fd/config", json=CONNECTOR["config"])
    deleted = httpx.delete(f"{url}connectors/c%2Fd")

    assert (201, f"{url}connectors/c%2Fd") == (created.status_code, created.headers["location"])
    assert "c/d" == created.json()["name"]
    assert 200 == replaced.status_code
    assert (204, b"") == (deleted.status_code, deleted.content)
    assert {} == leader.configs
    assert 3 == follower.caught_up


def test_a_follower_does_not_catch_up_after_a_question(serve: Serve) -> None:
    """Nothing has been changed by it."""
    leader = FakeHerder()
    follower = following(serve(leader))
    url = serve(follower)

    answers = [httpx.request(method, f"{url}connectors") for method in ("GET", "HEAD")]

    assert [200, 200] == [each.status_code for each in answers]
    assert 0 == follower.caught_up


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


def test_a_worker_that_is_no_longer_the_one_to_ask_is_not_waited_for(serve: Serve) -> None:
    """It is frozen, say, and another one leads by now: what it will have done is not known."""
    asked, may_answer = threading.Event(), threading.Event()

    def frozen() -> None:
        asked.set()
        may_answer.wait(60)

    leader = serve(FakeHerder(trouble=frozen))

    def elsewhere() -> None:
        raise ElsewhereError("The leader can do this.", url=leader, is_over=asked.is_set)

    url = serve(FakeHerder(trouble=elsewhere))
    try:
        answer = httpx.post(f"{url}connectors", json=CONNECTOR, timeout=30)
    finally:
        may_answer.set()

    assert 409 == answer.status_code
    assert "is no longer the one to ask" in answer.json()["message"]


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
    assert ["ada"] == leader.asked_by
    assert httpx.delete(f"{url}connectors/c").status_code == 401


ALTERED = {"offsets": [{"partition": {"p": "é"}, "offset": {"o": 1}}]}
ALTERING = "connectors/c%2Fd/offsets?dry_run=true&%C3%A9="
CLIENT = "127.0.0.2"


def member(leader: str | None = None, **more: Any) -> FakeHerder:  # noqa: ANN401 (as the herder has them)
    """A herder of a group, which sends everything to *leader*; without it, it leads, and has the connector ``c/d``."""
    made = FakeHerder(configs={"c/d": {"name": "c/d"}}) if leader is None else following(leader)
    return replace(made, is_in_group=True, **more)


def altered(url: str, **headers: str) -> None:
    """Change offsets, from an address that no worker has."""
    transport = httpx.HTTPTransport(local_address=CLIENT)
    with httpx.Client(transport=transport) as client:
        answer = client.patch(f"{url}{ALTERING}", json=ALTERED, headers=headers)
    assert answer.is_success, answer.text


def told(**changed: Any) -> dict[str, str]:  # noqa: ANN401 (as the request has them)
    """The header for a request of ``altered``, *changed*, that names Eve."""
    body = httpx.Request("PATCH", "http://x/", json=ALTERED).content
    request = ApiRequest(
        method="PATCH",
        path="/connectors/c%2Fd/offsets",
        query={"dry_run": ["true"], "é": [""]},
        body=body,
    )
    header = member().told("eve", replace(request, **changed).as_signed)
    assert header is not None
    return {REQUESTER_HEADER: header}


def test_the_clients_address_is_told(serve: Serve) -> None:
    """By each worker that the request passes, not that of the last one."""
    leader = member()
    second = serve(member(serve(leader)))
    altered(second)
    altered(serve(member(second)))

    assert [CLIENT, CLIENT] == leader.asked_by


def test_a_user_who_has_logged_in_at_the_follower_is_told(serve: Serve, tmp_path: Path) -> None:
    """The leader may have no users; where it has some, they count."""
    users = tmp_path / "users"
    users.write_text("ädä=secret\n", encoding="utf-8")
    login = {
        "rest_extension_classes": BASIC_AUTH,
        "rest_basic_auth_credentials_file": str(users),
    }
    leader = member()
    authorization = "Basic " + base64.b64encode("ädä:secret".encode()).decode()
    altered(serve(member(serve(leader)), **login), Authorization=authorization)
    altered(serve(leader, **login), Authorization=authorization, **told())

    assert ["ädä", "ädä"] == leader.asked_by


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "POST"},
        {"path": "/connectors/c/d/offsets"},
        {"query": {"dry_run": ["false"], "é": [""]}},
        {"query": {"dry_run": ["true"]}},
        {"body": b""},
    ],
)
def test_a_header_is_good_for_one_request_alone(
    serve: Serve, changed: Mapping[str, object]
) -> None:
    """Taken from one, it says nothing about another."""
    leader = member()
    url = serve(leader)
    altered(url, **told())
    altered(url, **told(**changed))

    assert ["eve", CLIENT] == leader.asked_by


@pytest.mark.parametrize(
    "header", ["eve", "", "eve HmacSHA256 AAAA", "eve None x", "eve HmacSHA1 a a", "a  b"]
)
def test_a_client_tells_nothing(serve: Serve, header: str) -> None:
    """Neither to the leader nor by a follower."""
    leader = member()
    url = serve(leader)
    for each in (url, serve(member(url))):
        altered(each, **{REQUESTER_HEADER: header})

    assert [CLIENT, CLIENT] == leader.asked_by


@pytest.mark.parametrize(
    ("of_follower", "of_leader"),
    [
        ({"session_key": None}, {}),
        ({}, {"session_key": None}),
        ({}, {"session_key": replace(SESSION_KEY, key=b"another")}),
        ({"is_in_group": False}, {}),
        ({}, {"is_in_group": False}),
    ],
)
def test_what_is_not_known_to_come_from_a_worker_is_not_believed(
    serve: Serve, of_follower: Mapping[str, object], of_leader: Mapping[str, object]
) -> None:
    """The request is answered, as one of the follower's address."""
    leader = replace(member(), **of_leader)
    altered(serve(replace(member(serve(leader)), **of_follower)), **told())

    assert ["127.0.0.1"] == leader.asked_by


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
