"""The client of other workers."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx
import pytest

from headrace.herder import request_signing
from headrace.herder.errors import ConflictError, NotFoundError, UnavailableError
from headrace.rest.config import RestConfig
from headrace.rest.peers import Peers
from headrace.rest.server import RestServer
from rest.certificates import certificate
from rest.fake_herder import SESSION_KEY, SIGNING, FakeHerder

BODY = b'[{"x":"0"}]'
SIGNED = SIGNING.signed(BODY, SESSION_KEY)


@pytest.fixture
def peers() -> Iterator[request_signing.Peers]:
    """One that trusts the machine's authorities, as the herder knows it."""
    with closing(Peers()) as opened:
        yield opened


def test_a_signed_request_is_granted(
    client: httpx.Client, herder: FakeHerder, peers: request_signing.Peers
) -> None:
    """The other worker's herder has it."""
    peers.put("POST", f"{client.base_url}/connectors/c/tasks?config=d", BODY, SIGNED)
    peers.put("PUT", f"{client.base_url}/connectors/c/quiet", b"", SIGNING.signed(b"", SESSION_KEY))

    assert [("put_tasks", ("c", [{"x": "0"}], "d")), ("await_quiet", "c")] == herder.calls


def test_a_refusal_is_the_other_workers(
    client: httpx.Client, herder: FakeHerder, peers: request_signing.Peers
) -> None:
    """The same error, with its sentence."""
    with pytest.raises(NotFoundError, match="Connector gone not found"):
        peers.put("POST", f"{client.base_url}/connectors/gone/tasks", BODY, SIGNED)
    herder.session_key = None
    with pytest.raises(UnavailableError, match="still starting up"):
        peers.put("POST", f"{client.base_url}/connectors/c/tasks", BODY, SIGNED)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/connectors/c/quiet?x=canary", "ftp://h/c", "http://[/c"]
)
def test_a_worker_that_does_not_answer_is_named(peers: request_signing.Peers, url: str) -> None:
    """By its address alone; the request may be sent again."""
    with pytest.raises(ConflictError, match=r"does not answer .*Retry later") as caught:
        peers.put("PUT", url, b"", {})

    assert "canary" not in str(caught.value)


def test_a_lost_connection_has_a_reason_where_the_client_gives_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kind of error then says what has happened."""

    def lost(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("")

    peers, client = Peers(), httpx.Client(transport=httpx.MockTransport(lost))
    monkeypatch.setattr(peers, "_opened", lambda: client)
    with closing(client), pytest.raises(ConflictError, match=r"does not answer \(ReadError\)"):
        peers.put("PUT", "http://10.0.0.5:8083/connectors/c/quiet", b"", {})


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (502, b"<html>Bad gateway</html>"),
        (502, b""),
        (503, b'{"error":"busy"}'),
        (503, b'["busy"]'),
        (302, b""),
    ],
)
def test_what_is_no_answer_of_a_worker_is_a_conflict(
    peers: request_signing.Peers, status: int, body: bytes
) -> None:
    """Such as that of a proxy in front of a worker that is away."""
    with answering(status, body) as server:
        Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ConflictError, match=rf"is no worker \(HTTP {status}"):
            peers.put("PUT", f"http://127.0.0.1:{server.server_port}/connectors/c/quiet", b"", {})


def answering(status: int, body: bytes) -> HTTPServer:
    """A server that answers one request with that."""

    class Proxy(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as the library calls it)
            pass

    return HTTPServer(("127.0.0.1", 0), Proxy)


def test_workers_at_https_know_each_other_by_their_certificates(herder: FakeHerder) -> None:
    """Each shows its own and checks the other's; one that does not trust it sends nothing."""
    ours = certificate()
    config = RestConfig.parse(
        {
            "listeners": "https://127.0.0.1:0",
            "listeners.https.ssl.keystore.key": ours.key_pem(),
            "listeners.https.ssl.keystore.certificate.chain": ours.pem,
            "listeners.https.ssl.truststore.certificates": ours.pem,
            "listeners.https.ssl.client.auth": "required",
        }
    )
    server = RestServer(herder, config)
    server.start()
    anonymous = ssl.create_default_context(cadata=ours.pem)
    try:
        url = f"{server.url}connectors/c/tasks"
        for trust in (None, anonymous):
            with closing(Peers(trust)) as refused, pytest.raises(ConflictError):
                refused.put("POST", url, BODY, SIGNED)
        assert [] == herder.calls
        with closing(Peers(config.trust_context())) as trusted:
            trusted.put("POST", url, BODY, SIGNED)
    finally:
        server.close()

    assert [("put_tasks", ("c", [{"x": "0"}], None))] == herder.calls


def test_a_client_of_others_outlives_the_server_that_uses_it(
    herder: FakeHerder, client: httpx.Client
) -> None:
    """Its owner closes it, after the herder, which uses it as well; closed, it opens again."""
    with closing(Peers()) as peers:
        server = RestServer(
            herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}), peers=peers
        )
        server.start()
        server.close()
        peers.put("POST", f"{client.base_url}/connectors/c/tasks", BODY, SIGNED)

    assert 1 == len(herder.calls)
