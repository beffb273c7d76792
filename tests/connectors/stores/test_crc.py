"""Checksums that stores give and Python does not know, against published values and their definition."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.files.stores.crc import CRC32C, CRC64NVME, Crc, Polynomial

BOTH = pytest.mark.parametrize("polynomial", [CRC32C, CRC64NVME], ids=["crc32c", "crc64nvme"])


@cache
def divided(polynomial: Polynomial) -> list[int]:
    """What each byte leaves behind, bit by bit."""
    found = list(range(256))
    for _ in range(8):
        found = [(each >> 1) ^ (polynomial.coefficients if each & 1 else 0) for each in found]
    return found


def by_definition(polynomial: Polynomial, data: bytes) -> bytes:
    """Byte by byte."""
    table = divided(polynomial)
    ones = remainder = (1 << polynomial.bits) - 1
    for byte in data:
        remainder = (remainder >> 8) ^ table[(remainder ^ byte) & 0xFF]
    return (remainder ^ ones).to_bytes(polynomial.size, "big")


@pytest.mark.parametrize(
    ("polynomial", "data", "expected"),
    [
        (CRC32C, b"123456789", "e3069283"),
        (CRC32C, bytes(32), "8a9136aa"),
        (CRC32C, b"\xff" * 32, "62a8ab43"),
        (CRC32C, bytes(range(32)), "46dd794e"),
        (CRC64NVME, b"123456789", "ae8b14860a799888"),
        (CRC64NVME, bytes(4096), "6482d367eb22b64e"),
        (CRC64NVME, b"\xff" * 4096, "c0ddba7302eca3ac"),
        (CRC64NVME, b"", "0000000000000000"),
    ],
)
def test_published_values(polynomial: Polynomial, data: bytes, expected: str):
    """RFC 3720 has those of CRC-32C, NVMe's specification those of CRC-64."""
    crc = Crc(polynomial)
    crc.update(data)

    assert expected == crc.digest().hex()


@BOTH
@given(data=st.data(), length=st.integers(0, 3000), seed=st.integers())
def test_pieces_of_any_size_are_one_object(
    polynomial: Polynomial, data: st.DataObject, length: int, seed: int
):
    """Also where it was asked for a checksum in between, and where two go on from one place."""
    content = random.Random(seed).randbytes(length)
    cut = data.draw(st.integers(0, length))
    crc = Crc(polynomial)
    crc.update(content[:cut])
    if data.draw(st.booleans()):
        assert by_definition(polynomial, content[:cut]) == crc.digest()
    other = crc.copy()
    crc.update(content[cut:])
    other.update(b"other")

    assert by_definition(polynomial, content) == crc.digest()
    assert by_definition(polynomial, content[:cut] + b"other") == other.digest()


@BOTH
@pytest.mark.parametrize("more", [-1, 0, 1, 100])
def test_blocks_are_joined(polynomial: Polynomial, more: int):
    """Zeros before and behind count; whole blocks and what is left do."""
    content = bytes(5) + random.Random(1).randbytes(1024 * 1024 - 5 + more) + bytes(9)
    whole, pieces = Crc(polynomial), Crc(polynomial)
    whole.update(content)
    for start in range(0, len(content), 70_000):
        pieces.update(memoryview(content)[start : start + 70_000])

    assert whole.digest() == pieces.digest() == by_definition(polynomial, content)
