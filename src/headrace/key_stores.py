"""Java's key and trust stores: detects their form, reads PKCS12 stores as PEM, and loads their keys for TLS."""

from __future__ import annotations

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


class Pkcs12:
    """An opened store. Raises ``ImportError`` without the extra ``pkcs12``, and ``ValueError`` if *password* does not open it."""

    def __init__(self, content: bytes, password: bytes | None) -> None:
        # Imported here, because the library is optional.
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
