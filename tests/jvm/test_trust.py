"""The system's certificates as a trust store that Java reads."""

from __future__ import annotations

import hashlib
import struct
import subprocess
from pathlib import Path

import pytest

from headrace.jvm import trust_store as trust
from headrace.jvm.java import find_java

PEM_BLOCK = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"


def test_each_certificate_once():
    """What stands twice in a bundle, with comments around it, is one certificate."""
    assert (b"\1\2\3",) == trust.certificates_of(f"# a\n{PEM_BLOCK}# b\n{PEM_BLOCK}")


def test_empty_store():
    """A store of nothing is its header and the digest over it."""
    header = struct.pack(">III", 0xFEEDFEED, 2, 0)
    digest = hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + header).digest()

    assert header + digest == trust.jks_bytes([])


def test_named_bundle_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SSL_CERT_FILE, a company's usual way, wins over the system's bundle."""
    bundle = tmp_path / "company.pem"
    bundle.write_text(PEM_BLOCK)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))

    assert PEM_BLOCK == trust.system_pem()


def test_java_reads_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Java's own keytool lists as many certificates as the system has."""
    count = len(trust.certificates_of(trust.system_pem()))
    keytool = find_java().executable.resolve().with_name("keytool")
    if not count or not keytool.exists():
        pytest.skip("needs the system's certificates and keytool")
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))

    store = trust.trust_options()[0].partition("=")[2]
    command = [str(keytool), "-list", "-keystore", store, "-storepass", trust.PASSWORD]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert count == listed.count("trustedCertEntry")
