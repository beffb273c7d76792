"""Java's key stores and trust stores, as the client's settings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import client_config
from rest.certificates import Certificate, certificate

PASSWORD = "canary-of-stores"
TLS = {"security.protocol": "SSL"}


@pytest.fixture(scope="module")
def ours() -> Certificate:
    """A key and its certificate."""
    return certificate()


def _settings(**props: str) -> dict[str, str | int | bool]:
    given = {key.replace("_", "."): value for key, value in props.items()}
    settings = dict(client_config({**TLS, **given}).settings)
    # The client itself has the last word.
    AdminClient({**settings, "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    return settings


def _problem(**props: str) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        _settings(**props)
    assert PASSWORD not in str(caught.value)
    [problem] = caught.value.problems
    return problem


def _trusting(ours: Certificate, *, password: str = PASSWORD) -> bytes:
    entry = pkcs12.PKCS12Certificate(ours.certificate, b"ca")
    return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))


@pytest.mark.parametrize("kind", [None, "JKS", "PKCS12", "pkcs12"])
def test_a_trust_store_in_pkcs12_becomes_certificates(
    ours: Certificate, tmp_path: Path, kind: str | None
):
    """Also under the name of Java's own form, which is the default, as Java reads it."""
    path = tmp_path / "trust.p12"
    path.write_bytes(_trusting(ours))
    kinds = {} if kind is None else {"ssl_truststore_type": kind}

    settings = _settings(
        ssl_truststore_location=str(path), ssl_truststore_password=PASSWORD, **kinds
    )

    assert ours.pem == settings["ssl.ca.pem"]
    assert not any("truststore" in key for key in settings)


def test_a_store_that_keytool_made_is_read(ours: Certificate, tmp_path: Path):
    """Its ciphers are those of Java; and its own form is refused with the command that mends it."""
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("there is no keytool")
    (tmp_path / "ca.pem").write_text(ours.pem)
    for kind in ("PKCS12", "JKS"):
        made = [keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", "ca.pem"]
        store = ["-keystore", f"trust.{kind}", "-storetype", kind, "-storepass", PASSWORD]
        subprocess.run([*made, *store], cwd=tmp_path, check=True, capture_output=True)
    place = {"ssl_truststore_password": PASSWORD}

    found = _settings(ssl_truststore_location=str(tmp_path / "trust.PKCS12"), **place)
    key, told = _problem(ssl_truststore_location=str(tmp_path / "trust.JKS"), **place)

    assert ours.pem == found["ssl.ca.pem"]
    assert "ssl.truststore.location" == key
    assert f"keytool -importkeystore -srckeystore {tmp_path}/trust.JKS " in told


@pytest.mark.parametrize("kind", [None, "JKS", "PKCS12"])
def test_a_key_store_in_pkcs12_is_the_clients_to_read(
    ours: Certificate, tmp_path: Path, kind: str | None
):
    """With its password."""
    path = tmp_path / "key.p12"
    path.write_bytes(ours.pkcs12(PASSWORD))
    kinds = {} if kind is None else {"ssl_keystore_type": kind}

    settings = _settings(ssl_keystore_location=str(path), ssl_keystore_password=PASSWORD, **kinds)

    assert str(path) == settings["ssl.keystore.location"]
    assert "ssl.keystore.type" not in settings


def test_pem_files_are_the_clients_to_read(ours: Certificate, tmp_path: Path):
    """A key store holds the key and its certificates, a trust store certificates."""
    key, trust = tmp_path / "key.pem", tmp_path / "trust.pem"
    key.write_text(ours.key_pem(PASSWORD) + ours.pem)
    trust.write_text(ours.pem)

    settings = _settings(
        ssl_keystore_location=str(key),
        ssl_keystore_type="PEM",
        ssl_key_password=PASSWORD,
        ssl_truststore_location=str(trust),
        ssl_truststore_type="PEM",
    )

    assert str(key) == settings["ssl.certificate.location"] == settings["ssl.key.location"]
    assert str(trust) == settings["ssl.ca.location"]


def test_pem_in_the_file_may_be_on_one_line(ours: Certificate):
    """As a property file joins its lines, and as Java takes it."""
    settings = _settings(
        ssl_keystore_type="PEM",
        ssl_keystore_key=" ".join(ours.key_pem().split("\n")),
        ssl_keystore_certificate_chain=" ".join((ours.pem + ours.pem).split("\n")),
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=" ".join(ours.pem.split("\n")),
    )

    assert ours.pem == str(settings["ssl.ca.pem"]).strip() + "\n"
    assert ours.key_pem().split() == str(settings["ssl.key.pem"]).split()
    assert 2 == str(settings["ssl.certificate.pem"]).count("\n-----END CERTIFICATE-----\n")


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_javas_own_form_is_refused(tmp_path: Path, store: str):
    """With the command that converts it, whatever type it is said to be of."""
    path = tmp_path / "a.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")

    for kind in ("JKS", "PKCS12"):
        key, told = _problem(
            **{f"ssl_{store}_location": str(path), f"ssl_{store}_type": kind},
            **{f"ssl_{store}_password": PASSWORD},
        )
        assert f"ssl.{store}.location" == key
        assert told.startswith("Stores of type JKS are not supported")
        assert f"keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12" in told


def test_a_wrong_password_is_reported(ours: Certificate, tmp_path: Path):
    """By the key that names the file, and without the password."""
    path = tmp_path / "trust.p12"
    path.write_bytes(_trusting(ours, password="another"))

    key, told = _problem(ssl_truststore_location=str(path), ssl_truststore_password=PASSWORD)

    assert "ssl.truststore.location" == key
    assert "cannot be opened as PKCS12 with ssl.truststore.password" in told


def test_a_missing_file_is_reported():
    """With its path."""
    key, told = _problem(ssl_truststore_location="/nowhere/trust.p12")

    assert "ssl.truststore.location" == key
    assert "The file '/nowhere/trust.p12' cannot be read: No such file" in told


def test_two_places_for_the_same_are_refused(ours: Certificate, tmp_path: Path):
    """Nobody knows which one is meant; as in Java."""
    path = tmp_path / "trust.pem"
    path.write_text(ours.pem)

    key, told = _problem(ssl_truststore_location=str(path), ssl_truststore_certificates=ours.pem)

    assert "ssl.truststore.location" == key
    assert "ssl.truststore.certificates is set as well" in told


def test_without_tls_the_keys_of_listeners_do_no_harm():
    """A worker's file may have them for its own listeners, where the client has nothing to do with them."""
    props = {"ssl.keystore.location": "/nowhere/key.jks", "security.protocol": "SASL_PLAINTEXT"}

    assert not any(key.startswith("ssl.") for key in client_config(props).settings)
