"""Requests that workers of a group send each other, which they sign (KIP-507)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from headrace.herder.errors import ElsewhereError
from headrace.herder.request_signing import ALGORITHM_HEADER, SIGNATURE_HEADER
from headrace.rest.app import herder_routes
from headrace.rest.config import BASIC_AUTH, RestConfig
from headrace.rest.server import RestServer
from headrace.storage.protocols import SessionKey
from rest.fake_herder import SESSION_KEY, SIGNING, FakeHerder, worker

Serve = Callable[..., str]
TASKS = [{"task.class": "T", "x": "0"}, {"x": "é"}]
INTERNAL = [
    ("POST", "connectors/c/tasks", json.dumps(TASKS).encode()),
    ("PUT", "connectors/c/fence", b""),
    ("PUT", "connectors/c/fence", b'{"task-count":3}'),
    ("PUT", "connectors/c/quiet", b""),
    ("PUT", "workers", b'{"worker":"w:1","action":"relinquish","stay":true}'),
    ("PUT", "workers", b'{"worker":"w:1","action":"rejoin"}'),
]
JSON = {"Content-Type": "application/json"}


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


def leading() -> FakeHerder:
    """A herder that has the connector ``c``, in a group with the worker ``w:1``."""
    return FakeHerder(configs={"c": {"name": "c"}}, group={"w:1": worker("w:1")})


def following(leader: str) -> FakeHerder:
    """A herder that sends everything to *leader*."""

    def elsewhere() -> None:
        raise ElsewhereError("Only the leader may write task configurations.", url=leader)

    return FakeHerder(trouble=elsewhere)


def sent(url: str, method: str, path: str, body: bytes, **changed: str) -> httpx.Response:
    """The answer to a signed request; its headers may be *changed*, an empty one is left out."""
    headers = {**SIGNING.signed(body, SESSION_KEY), **JSON}
    headers |= {
        {"signature": SIGNATURE_HEADER, "algorithm": ALGORITHM_HEADER}[k]: v
        for k, v in changed.items()
    }
    given = {name: value for name, value in headers.items() if value}
    return asked(url, method, path, body=body, headers=given)


def asked(
    url: str,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """The answer to a request over http, for which no authorities have to be read."""
    return httpx.request(method, f"{url}{path}", content=body, headers=headers, verify=False)


def test_what_is_signed_reaches_the_herder(serve: Serve) -> None:
    """Each is answered with 204, as in Kafka Connect."""
    herder = leading()
    url = serve(herder)
    answers = [sent(url, *each) for each in INTERNAL]
    digest = sent(url, "POST", "connectors/c/tasks?config=ab%2B", b"[]")

    assert [(204, b"")] * 7 == [(each.status_code, each.content) for each in (*answers, digest)]
    assert [
        ("put_tasks", ("c", TASKS, None)),
        ("put_task_count", ("c", None)),
        ("put_task_count", ("c", 3)),
        ("await_quiet", "c"),
        ("relinquish", ("w:1", True)),
        ("rejoin", "w:1"),
        ("put_tasks", ("c", [], "ab+")),
    ] == herder.calls


@pytest.mark.parametrize(
    "body",
    [b'{"action":"relinquish"}', b'{"worker":"w:1","action":"end"}', b'{"worker":"w:1","stay":1}'],
)
def test_no_worker_leaves_for_what_is_not_said(serve: Serve, body: bytes) -> None:
    """A body of another form changes nothing."""
    herder = leading()

    assert 500 == sent(serve(herder), "PUT", "workers", body).status_code
    assert [] == herder.calls


def test_no_worker_leaves_unsigned(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a group with workers of Kafka Connect that signs nothing, anyone could have it end."""
    herder = leading()
    monkeypatch.setattr(herder, "verify", lambda *_: None)

    assert 400 == sent(serve(herder), *INTERNAL[-1], signature="", algorithm="").status_code
    assert [] == herder.calls


NOT_PERMITTED = (
    "This worker does not support the 'HmacSHA512' key signing algorithm used by other workers. This worker is currently "
    "configured to use: [HmacSHA256, HmacSHA1]. Check that all workers' configuration files permit the same set of signature "
    "algorithms, and correct any misconfigured worker and restart it."
)


@pytest.mark.parametrize(("method", "path", "body"), INTERNAL)
@pytest.mark.parametrize(
    ("changed", "key", "status", "message"),
    [
        ({"signature": ""}, SESSION_KEY, 400, "Internal request missing required signature"),
        ({"algorithm": ""}, SESSION_KEY, 400, "Internal request missing required signature"),
        ({"algorithm": "HmacFoo"}, SESSION_KEY, 400, "Algorithm HmacFoo not available"),
        (
            {"signature": "a-b="},
            SESSION_KEY,
            400,
            "Internal request with a signature that is not base64: Only base64 data is allowed",
        ),
        ({"algorithm": "HmacSHA512"}, SESSION_KEY, 400, NOT_PERMITTED),
        (
            {},
            None,
            503,
            (
                "This worker is still starting up and has not been able to read a session key from the config topic yet"
            ),
        ),
        (
            {},
            SessionKey(key=b"other", algorithm="HmacSHA256", created_ms=1),
            403,
            "Internal request contained invalid signature.",
        ),
        (
            {"algorithm": "HmacSHA1"},
            SESSION_KEY,
            403,
            "Internal request contained invalid signature.",
        ),
    ],
)
def test_what_is_not_signed_is_refused(
    client: httpx.Client,
    herder: FakeHerder,
    *,
    method: str,
    path: str,
    body: bytes,
    changed: dict[str, str],
    key: SessionKey | None,
    status: int,
    message: str,
) -> None:
    """In Kafka Connect's words, and before anything else is looked at."""
    herder.session_key = key
    answer = sent(f"{client.base_url}/", method, path, body, **changed)

    assert {"error_code": status, "message": message} == answer.json()
    assert status == answer.status_code
    assert [] == herder.calls


def test_a_body_is_verified_before_it_is_read(client: httpx.Client, herder: FakeHerder) -> None:
    """One that is no JSON is told to those who have signed it alone."""
    url = f"{client.base_url}/"
    for body in (b"{", b"{}", b"[1]", b'[{"a":null}]', b'[{"a":[]}]', b""):
        refused = sent(url, "POST", "connectors/c/tasks", body, signature="AAAA")
        assert 403 == refused.status_code
        assert 500 == sent(url, "POST", "connectors/c/tasks", body).status_code
    for body in (b"{", b"[]", b"{}", b'{"task-count":-1}', b'{"task-count":true}', b'{"x":1}'):
        assert 500 == sent(url, "PUT", "connectors/c/fence", body).status_code
    assert [] == herder.calls


@pytest.mark.parametrize(("method", "path", "body"), INTERNAL)
def test_a_follower_sends_the_signature_on(
    serve: Serve, method: str, path: str, body: bytes
) -> None:
    """The leader may just have changed; what it refuses is refused in its words."""
    leader = leading()
    url = serve(following(serve(leader)))

    assert 204 == sent(url, method, path, body).status_code
    assert 1 == len(leader.calls)
    leader.session_key = SessionKey(key=b"newer", algorithm="HmacSHA256", created_ms=2)
    refused = sent(url, method, path, body)
    assert (403, "Internal request contained invalid signature.") == (
        refused.status_code,
        refused.json()["message"],
    )
    assert 1 == len(leader.calls)


def test_workers_need_no_login(serve: Serve, tmp_path: Path) -> None:
    """Their signatures are verified, as with Kafka Connect's extension; everything else of these paths needs one."""
    users = tmp_path / "users"
    users.write_text("ada=secret\n")
    login = {"rest_extension_classes": BASIC_AUTH, "rest_basic_auth_credentials_file": str(users)}
    herder = leading()
    url = serve(herder, **login)
    ada = {"Authorization": "Basic " + base64.b64encode(b"ada:secret").decode()}

    for method, path, body in INTERNAL:
        assert 204 == sent(url, method, path, body).status_code
        assert 403 == sent(url, method, path, body, signature="AAAA").status_code
        assert 400 == asked(url, method, path, body=body, headers={**ada, **JSON}).status_code
        assert 401 == asked(url, "OPTIONS", path).status_code
    assert 401 == asked(url, "GET", "connectors/c/tasks").status_code
    assert 200 == asked(url, "GET", "connectors/c/tasks", headers=ada).status_code


def test_every_internal_route_is_held_against_the_table(herder: FakeHerder) -> None:
    """A route that needs no login, and no signature either, would be open to everyone."""
    internal = {
        (method, each.path.removeprefix("/").replace("{}", "c"))
        for each in herder_routes(herder)
        for method in each.internal
    }

    assert internal == {(method, path) for method, path, _ in INTERNAL}
