"""Java's key and trust stores: detects their form, reads PKCS12 stores as PEM, and loads their keys for TLS; makes new certificates."""

from __future__ import annotations

import datetime as dt
import ssl
import tempfile
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

Form = Literal["PEM", "PKCS12", "JKS"]

_PEM_BEGINS: Final = b"-----BEGIN"
_JKS_BEGINS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
# A PEM file may have comments before its first block.
_SEEN_BYTES: Final = 65_536
_VALID_DAYS: Final = 36_500


def form_of(content: bytes) -> Form:
    """The form of a store's file by its bytes; anything but JKS and PEM is taken for PKCS12. Pure."""
    if content.startswith(_JKS_BEGINS):
        return "JKS"
    return "PEM" if _PEM_BEGINS in content[:_SEEN_BYTES] else "PKCS12"


def advice(location: str) -> str:
    """How to convert the store at *location* into one that can be read."""
    return (
        f"Convert it: keytool -importkeystore -srckeystore {location} -destkeystore {location}.p12 "
        "-deststoretype PKCS12"
    )


def load_cert_chain(context: ssl.SSLContext, pem: bytes, password: str) -> None:
    """Load the key and its certificates in *pem* into *context*.

    Raises ``ValueError`` with a sentence, which names Kafka's ``ssl.key.password``.
    """
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        # OpenSSL reads private keys from files only; no one else may read this one.
        file.write(pem)
        file.flush()
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(file.name, password=password)
        except ssl.SSLError as error:
            raise ValueError(
                f"The store holds no usable key with its certificate ({error.reason or 'bad PEM'}). Check "
                "ssl.key.password."
            ) from None


def self_signed() -> bytes:
    """A new key and a certificate for it in PEM, for peers who know that one certificate: no one else has a reason to trust it."""
    # Imported here: few workers need it, and all would wait for it.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "headrace")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks differ, and workers run for years.
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_VALID_DAYS))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(pem, pkcs8, plain) + made.public_bytes(pem)


class Pkcs12:
    """An opened store. Raises ``ValueError`` if *password* does not open it."""

    def __init__(self, content: bytes, password: bytes | None) -> None:
        # Imported here: few workers need it, and all would wait for it.
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415

        self._store: PKCS12KeyAndCertificates = pkcs12.load_pkcs12(content, password)

    def certificates(self) -> bytes:
        """All certificates, the key's own first; empty when there are none."""
        from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

        found = [self._store.cert, *self._store.additional_certs]
        return b"".join(
            each.certificate.public_bytes(Encoding.PEM) for each in found if each is not None
        )

    def key(self, password: str) -> bytes:
        """The key, encrypted with *password* unless that is empty; empty when there is no key."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        if self._store.key is None:
            return b""
        return self._store.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption(),
        )
