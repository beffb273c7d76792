"""The certificate by which tasks know their worker."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from headrace.connect.errors import ConfigError
from headrace.key_stores import self_signed
from headrace.listener_tls import LISTENERS, TlsKeys, fingerprint_of
from rest.certificates import Certificate, certificate


def sha256(shown: Certificate) -> bytes:
    """As `openssl x509 -fingerprint -sha256` has it."""
    return hashlib.sha256(shown.certificate.public_bytes(Encoding.DER)).digest()


@pytest.fixture
def ours() -> Certificate:
    """A worker's own."""
    return certificate()


def test_the_worker_s_key_store_is_used(ours: Certificate, tmp_path: Path) -> None:
    """That of its https listeners, or else the one for Kafka; the first certificate in it is the key's."""
    own, of_kafka = tmp_path / "own.pem", tmp_path / "kafka.pem"
    own.write_text(ours.key_pem("pw") + ours.pem + certificate().pem)
    other = certificate()
    of_kafka.write_text(other.key_pem() + other.pem)
    given = {"ssl.keystore.location": str(of_kafka), "ssl.keystore.type": "PEM"}
    for_listeners = {
        f"{LISTENERS}ssl.keystore.location": str(own),
        f"{LISTENERS}ssl.keystore.type": "PEM",
        f"{LISTENERS}ssl.key.password": "pw",
        f"{LISTENERS}ssl.client.auth": "required",
    }

    context, fingerprint = TlsKeys.of(given | for_listeners, LISTENERS).pinned_context()

    assert sha256(ours) == fingerprint
    # Tasks have no certificates.
    assert ssl.CERT_NONE is context.verify_mode
    assert sha256(other) == TlsKeys.of(given, LISTENERS).pinned_context()[1]


def test_without_a_key_store_there_is_a_new_certificate_each_time() -> None:
    """A trust store alone is for other servers."""
    given = {"ssl.truststore.location": "/nowhere.pem"}
    made = {TlsKeys.of(given, LISTENERS).pinned_context()[1] for _ in range(3)}

    assert 3 == len(made)


def test_a_key_store_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """It is not replaced silently."""
    given = {f"{LISTENERS}ssl.keystore.location": str(tmp_path / "none.pem")}

    with pytest.raises(ConfigError, match=r"listeners\.https\.ssl\.keystore\.location.*cannot be"):
        TlsKeys.of(given, LISTENERS).pinned_context()


def test_a_new_certificate_is_signed_by_its_own_key() -> None:
    """So that any program may verify it."""
    pem = self_signed()
    made = x509.load_pem_x509_certificate(pem)
    made.verify_directly_issued_by(made)

    assert hashlib.sha256(made.public_bytes(Encoding.DER)).digest() == fingerprint_of(pem)
