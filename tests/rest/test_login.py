"""Who is let in: basic authentication and TLS, through a real socket."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest

from headrace.connect.errors import ConfigError
from headrace.rest.config import BASIC_AUTH, RestConfig
from headrace.rest.login import passwords_in
from headrace.rest.server import RestServer
from rest.certificates import Certificate, certificate
from rest.conftest import Serve
from rest.fake_herder import FakeHerder

PASSWORD = "canary=é:1"


@pytest.fixture(scope="module")
def ours() -> Certificate:
    """The server's certificate."""
    return certificate()


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """A file of users, one of them with odd characters."""
    file = tmp_path / "users"
    file.write_text(f"# users\n\nanna = {PASSWORD}\n! more\nbob=b\n", "utf-8")
    return file


def test_basic_login(
    serve: Serve, herder: FakeHerder, credentials: Path, caplog: pytest.LogCaptureFixture
):
    """Users of the file get in, others get 401, everywhere; the log names users, no passwords, and the herder knows them."""
    extension = {"rest_extension_classes": BASIC_AUTH}
    client = serve(rest_basic_auth_credentials_file=str(credentials), **extension)
    caplog.set_level("INFO")

    for auth in (("anna", PASSWORD.encode()), ("bob", b"b")):
        assert 200 == client.get("/connectors", auth=auth).status_code
    for auth in (None, ("anna", "b"), ("eve", ""), ("", "")):
        answer = client.get("/admin/loggers", auth=auth)
        assert (401, "User cannot access the resource.") == (
            answer.status_code,
            answer.json()["message"],
        )
        assert answer.headers["www-authenticate"].startswith("Basic ")
    for header in ("Bearer x", "Basic", "Basic !!!", "Basic YQ=="):
        assert 401 == client.get("/", headers={"Authorization": header}).status_code
    body = {"offsets": [{"partition": {}}]}
    client.patch("/connectors/c/offsets", json=body, auth=("bob", b"b"))
    assert ["bob"] == herder.asked_by
    assert "127.0.0.1 - anna [" in caplog.text
    assert "canary" not in caplog.text


def test_blanks_behind_a_password_are_part_of_it(tmp_path: Path):
    """As in Java's properties; those before it, and around the user, are not."""
    file = tmp_path / "users"
    file.write_bytes(b" anna = a b \t\r\nbob=\tb\n")

    assert {"anna": "a b \t", "bob": "b"} == passwords_in(file)


@pytest.mark.parametrize(
    "content", [b"", b"# none", b"canary", b"=canary", b"canary=", b"canary= ", b"\xff=a"]
)
def test_wrong_credentials_files(tmp_path: Path, content: bytes):
    """Refused with the file's name; a line is named by its number, never shown."""
    file = tmp_path / "users"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match=str(file)) as caught:
        passwords_in(file)
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError, match="No such file"):
        passwords_in(tmp_path / "gone")


def stores(folder: Path, ours: Certificate) -> dict[str, dict[str, str]]:
    """The same certificate in every form that is read."""
    pem, hidden, packed = folder / "a.pem", folder / "b.pem", folder / "c.p12"
    pem.write_text(ours.key_pem() + ours.pem)
    hidden.write_text(ours.key_pem("canary") + ours.pem)
    packed.write_bytes(ours.pkcs12("canary"))
    return {
        "pem": {"ssl.keystore.location": str(pem), "ssl.keystore.type": "PEM"},
        "guessed": {"ssl.keystore.location": str(pem)},
        "hidden": {"ssl.keystore.location": str(hidden), "ssl.key.password": "canary"},
        "inline": {"ssl.keystore.key": ours.key_pem(), "ssl.keystore.certificate.chain": ours.pem},
        "pkcs12": {"ssl.keystore.location": str(packed), "ssl.keystore.password": "canary"},
        "called jks": {
            "ssl.keystore.location": str(packed),
            "ssl.keystore.type": "JKS",
            "ssl.keystore.password": "canary",
            "ssl.key.password": "canary",
        },
    }


@pytest.mark.parametrize("form", ["pem", "guessed", "hidden", "inline", "pkcs12", "called jks"])
def test_tls(herder: FakeHerder, tmp_path: Path, ours: Certificate, form: str):
    """A listener with https answers with its certificate; ``Location`` has https."""
    props = stores(tmp_path, ours)[form]
    config = RestConfig.parse({"listeners": "https://127.0.0.1:0", **props})
    server = RestServer(herder, config)
    server.start()
    trusting = ssl.create_default_context(cadata=ours.pem)
    try:
        with httpx.Client(verify=trusting) as client:
            answer = client.post(f"{server.url}connectors", json={"name": "n", "config": {}})
    finally:
        server.close()

    assert f"{server.url}connectors/n" == answer.headers["location"]


def test_clients_show_certificates(herder: FakeHerder, tmp_path: Path, ours: Certificate):
    """With ``required`` only those who have one that is trusted; prefixed keys hide the others."""
    theirs = certificate()
    pair = tmp_path / "theirs.pem"
    pair.write_text(theirs.key_pem() + theirs.pem)
    inline = stores(tmp_path, ours)["inline"]
    own = {
        **inline,
        "ssl.client.auth": "required",
        "ssl.truststore.certificates": theirs.pem,
    }
    config = RestConfig.parse(
        {
            "listeners": "https://127.0.0.1:0",
            "ssl.client.auth": "none",
            **{f"listeners.https.{key}": value for key, value in own.items()},
        }
    )
    server = RestServer(herder, config)
    server.start()
    trusting = ssl.create_default_context(cadata=ours.pem)
    try:
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url, verify=trusting)
        trusting.load_cert_chain(pair)
        assert 200 == httpx.get(server.url, verify=trusting).status_code
    finally:
        server.close()


@pytest.mark.parametrize(
    ("props", "key", "shown"),
    [
        ({}, "ssl.keystore.location", "needs a key and a certificate"),
        ({"ssl.keystore.location": "/gone"}, "ssl.keystore.location", "No such file"),
        ({"ssl.keystore.location": "{jks}"}, "ssl.keystore.type", "-deststoretype PKCS12"),
        (
            {"ssl.keystore.location": "{jks}", "ssl.keystore.type": "BCFKS"},
            "ssl.keystore.type",
            "Stores of type BCFKS are not supported, only PEM and PKCS12.",
        ),
        (
            {"ssl.keystore.location": "{p12}", "ssl.keystore.password": "canary-wrong"},
            "ssl.keystore.location",
            "cannot be opened as PKCS12 with this password",
        ),
        ({"ssl.keystore.location": "{hidden}"}, "ssl.keystore.location", "Check ssl.key.password"),
        ({"ssl.keystore.key": "canary"}, "ssl.keystore.location", "no usable key"),
        ({"ssl.cipher.suites": "X"}, "ssl.cipher.suites", "is not supported; leave it out"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols", "SSLv3 is not supported"),
        (
            {"ssl.keystore.location": "{pem}", "ssl.truststore.certificates": "x"},
            "ssl.truststore.location",
            "no certificates",
        ),
        ({"ssl.keystore.location": "{pem}", "ssl.client.auth": "x"}, "ssl.client.auth", "one of"),
    ],
)
def test_wrong_tls(
    herder: FakeHerder,
    tmp_path: Path,
    ours: Certificate,
    *,
    props: dict[str, str],
    key: str,
    shown: str,
):
    """Each is reported under its key as it was given, without any secret."""
    forms = stores(tmp_path, ours)
    jks = tmp_path / "x.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed1234")
    places = {"jks": str(jks), "p12": forms["pkcs12"]["ssl.keystore.location"]}
    places |= {each: forms[each]["ssl.keystore.location"] for each in ("pem", "hidden")}
    given = {f"listeners.https.{name}": each.format(**places) for name, each in props.items()}
    # Listeners with a key of their own have none of the others.
    given |= {"listeners": "https://127.0.0.1:0", "listeners.https.ssl.protocol": "TLS"}
    server = RestServer(herder, RestConfig.parse(given))

    with pytest.raises(ConfigError) as caught:
        server.start()

    ((problem, sentence),) = caught.value.problems
    assert f"listeners.https.{key}" == problem
    assert shown in sentence
    assert "canary" not in sentence


def test_wrong_tls_of_all_listeners(herder: FakeHerder):
    """Keys without the prefix are reported as they were given, too."""
    given = {"listeners": "https://127.0.0.1:0", "ssl.keystore.location": "/gone"}
    server = RestServer(herder, RestConfig.parse(given))

    with pytest.raises(ConfigError) as caught:
        server.start()

    shown = "/gone cannot be read: No such file or directory."
    assert (("ssl.keystore.location", shown),) == caught.value.problems
