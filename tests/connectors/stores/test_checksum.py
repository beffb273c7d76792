"""Checksums that stores give, against published values and in pieces."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.stores.checksum import Checksum

KINDS = ("crc32", "crc32c", "crc64nvme", "md5", "sha1", "sha256", "sha512")


def checksum(kind: str, expected: bytes, *pieces: bytes) -> Checksum:
    """Of *pieces*, one after the other."""
    found = Checksum(kind, expected)
    for piece in pieces:
        found.update(memoryview(piece))
    return found


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("crc32", b"123456789", "cbf43926"),
        ("crc32c", b"123456789", "e3069283"),
        ("crc32c", bytes(32), "8a9136aa"),
        ("crc32c", b"\xff" * 32, "62a8ab43"),
        ("crc32c", bytes(range(32)), "46dd794e"),
        ("crc64nvme", b"123456789", "ae8b14860a799888"),
        ("crc64nvme", bytes(4096), "6482d367eb22b64e"),
        ("crc64nvme", b"\xff" * 4096, "c0ddba7302eca3ac"),
        ("crc64nvme", b"", "0000000000000000"),
    ],
)
def test_published_values(kind: str, data: bytes, expected: str) -> None:
    """RFC 3720 has those of CRC-32C, NVMe's specification those of CRC-64."""
    assert checksum(kind, bytes.fromhex(expected), data).matches


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), length=st.integers(0, 3000), seed=st.integers())
def test_pieces_of_any_size_are_one_object(
    kind: str, data: st.DataObject, length: int, seed: int
) -> None:
    """Also where it was asked for a checksum in between, and where two go on from one place."""
    content = random.Random(seed).randbytes(length)
    cut = data.draw(st.integers(0, length))
    begun = checksum(kind, b"", content[:cut])
    if data.draw(st.booleans()):
        assert checksum(kind, b"", content[:cut]).found == begun.found
    other = begun.copy()
    begun.update(content[cut:])
    other.update(b"other")

    assert checksum(kind, b"", content).found == begun.found
    assert checksum(kind, b"", content[:cut] + b"other").found == other.found
    assert checksum(kind, b"").found == other.again().found
