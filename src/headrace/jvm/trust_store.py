"""The trust store for Java, made of the system's certificates: a company adds those of its proxies there."""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace.jvm.cache import cache_folder

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
KEYCHAINS = (
    "/System/Library/Keychains/SystemRootCertificates.keychain",
    "/Library/Keychains/System.keychain",
)
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Java's fixed word in the digest of a JKS file.
DIGEST_WORD = b"Mighty Aphrodite"
PASSWORD = "changeit"  # noqa: S105 (Java's usual one, for a file that holds no secret)


def trust_options() -> Sequence[str]:
    """Java options to trust the system's certificates; none when the system's certificates are not found."""
    certificates = certificates_of(system_pem())
    if not certificates:
        return ()
    content = jks_bytes(certificates)
    store = cache_folder("trust") / f"{hashlib.sha256(content).hexdigest()[:12]}.jks"
    if not store.is_file():
        new = store.with_suffix(f".{os.getpid()}")
        new.write_bytes(content)
        new.replace(store)
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    )


def system_pem() -> str:
    """The system's certificates as PEM text: a bundle named by the environment, else the usual one."""
    if sys.platform == "darwin" and not os.environ.get("SSL_CERT_FILE"):
        command = ["/usr/bin/security", "find-certificate", "-a", "-p", *KEYCHAINS]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return next((path.read_text(errors="replace") for path in _bundles()), "")


def _bundles() -> Iterator[Path]:
    named = (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile)
    for name in (*named, *BUNDLES):
        if name and Path(name).is_file() and os.access(name, os.R_OK):
            yield Path(name)


def certificates_of(pem: str) -> tuple[bytes, ...]:
    """The certificates in *pem*, DER encoded, each once."""
    return tuple(dict.fromkeys(ssl.PEM_cert_to_DER_cert(block) for block in PEM.findall(pem)))


def jks_bytes(certificates: Sequence[bytes]) -> bytes:
    """A Java key store, format JKS version 2, that holds *certificates* as trusted.

    Written here and not by ``keytool``, which takes half a second for each certificate.
    """
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        alias, kind = _text(f"system-{number}"), _text("X.509")
        header = struct.pack(">I", 2) + alias + struct.pack(">Q", 0) + kind
        body += header + struct.pack(">I", len(certificate)) + certificate
    word = PASSWORD.encode("utf-16-be") + DIGEST_WORD
    return body + hashlib.sha1(word + body).digest()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded
