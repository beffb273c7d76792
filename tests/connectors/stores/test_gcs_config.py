"""The settings of Google Cloud Storage, the login that they make, and what Google says is wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.gcs.config import GcsConfig
from headrace.stores.gcs.errors import refusal_of
from headrace.stores.gcs.login import login_of
from headrace.stores.rest.client import Request

BUCKET = {"gcs.bucket": "bucket"}
REQUEST = Request(method="GET", path="/a")


class _Tokens(BaseHTTPRequestHandler):
    status = 200
    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}
        if self.status != 200:
            answer = {"error": "invalid_grant", "error_description": "Unknown account."}
        body = json.dumps(answer).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def tokens() -> Iterator[tuple[type[_Tokens], str]]:
    """A server of tokens, and its address."""

    class Handler(_Tokens):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield Handler, f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def private_key() -> str:
    """The key of a service account."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def test_the_defaults_ask_google_with_the_usual_chain():
    """Nothing but a bucket is needed."""
    config = GcsConfig.parse(BUCKET)

    assert ("https://storage.googleapis.com", False, 1000, True) == (
        config.endpoint,
        config.anonymous,
        config.page_size,
        config.verify_tls,
    )


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"gcs.bucket": ""}, "gcs.bucket"),
        ({"gcs.endpoint": "storage.example"}, "gcs.endpoint"),
        ({"gcs.endpoint": "http://127.0.0.1:9"}, "gcs.endpoint"),
        ({"gcs.credentials.file": "/f", "gcs.credentials.json": "{}"}, "gcs.credentials.json"),
        ({"gcs.credentials.file": "/f", "gcs.anonymous": "true"}, "gcs.anonymous"),
        ({"gcs.tls.verify": "false", "gcs.tls.ca.file": "/ca"}, "gcs.tls.ca.file"),
        ({"gcs.page.size": "1001"}, "gcs.page.size"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_told(props: dict[str, str], key: str):
    """At the key that a person would change."""
    assert [key] == [name for name, _ in GcsConfig.problems({**BUCKET, **props})]


def test_a_service_account_signs_with_a_token_that_is_kept(
    private_key: str, tokens: tuple[type[_Tokens], str], tmp_path: Path
):
    """From a file or from the text of one; the token is fetched once."""
    text = _account(private_key, tokens[1])
    (tmp_path / "key.json").write_text(text)
    for props in (
        {"gcs.credentials.json": text},
        {"gcs.credentials.file": str(tmp_path / "key.json")},
    ):
        login = login_of(GcsConfig.parse({**BUCKET, **props}))
        for _ in range(2):
            assert "Bearer a-token" == login(REQUEST).headers["authorization"]

    assert 2 == tokens[0].asked


def test_a_login_that_is_refused_is_final_and_a_server_that_is_away_is_not(
    private_key: str, tokens: tuple[type[_Tokens], str]
):
    """The key is in neither error."""
    tokens[0].status = 400
    for address, kind in (
        (tokens[1], TaskFailedError),
        ("http://127.0.0.1:1", StoreUnavailableError),
    ):
        text = _account(private_key, address)
        config = GcsConfig.parse({**BUCKET, "gcs.credentials.json": text})
        with pytest.raises(kind, match="gs://bucket") as told:
            login_of(config)(REQUEST)
        assert not any(line in str(told.value) + repr(config) for line in private_key.split())


@pytest.mark.parametrize(
    "text",
    [
        "very-secret",
        '{"type": "very-secret"}',
        '{"type": "service_account", "private_key": "very-secret"}',
        "[]",
    ],
)
def test_what_is_no_key_is_told_without_showing_it(text: str):
    """Neither in the error nor in its cause."""
    login = login_of(GcsConfig.parse({**BUCKET, "gcs.credentials.json": text}))
    with pytest.raises(
        TaskFailedError, match=r"gcs\.credentials\.json: This is no JSON key"
    ) as told:
        login(REQUEST)
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__


def test_no_login_at_all_comes_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of what to set."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none"))
    with pytest.raises(TaskFailedError, match=r"gcs\.credentials\.file"):
        login_of(GcsConfig.parse(BUCKET))(REQUEST)
    with pytest.raises(TaskFailedError, match="cannot be read"):
        login_of(GcsConfig.parse({**BUCKET, "gcs.credentials.file": str(tmp_path / "none")}))(
            REQUEST
        )


def test_who_is_anonymous_shows_nothing():
    """Not even where there is a login."""
    login = login_of(GcsConfig.parse({**BUCKET, "gcs.anonymous": "true"}))

    assert REQUEST == login(REQUEST)


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (
            403,
            {"message": "M", "errors": [{"reason": "rateLimitExceeded"}]},
            "rateLimitExceeded",
            "M",
        ),
        (404, {"message": "No such object: b/k"}, "noSuchObject", "No such object: b/k"),
        (
            404,
            {"message": "The specified bucket does not exist."},
            "noSuchBucket",
            "The specified bucket does not exist.",
        ),
        (404, "No such object: b/k", "noSuchObject", "No such object: b/k"),
        (412, "", "412", ""),
        (502, "<html>", "502", "<html>"),
    ],
)
def test_answers_are_json_or_text(status: int, body: object, code: str, message: str):
    """A missing bucket is told from a missing object by its sentence."""
    text = body if isinstance(body, str) else json.dumps({"error": body})
    refusal = refusal_of(status, {}, text.encode())

    assert (status, code, message) == (refusal.status, refusal.code, refusal.message)


def _account(private_key: str, token_uri: str) -> str:
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "robot@project.example",
            "private_key": private_key,
            "token_uri": token_uri,
        }
    )
