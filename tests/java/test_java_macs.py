"""Java's message authentication codes: published vectors, and what Java 17 says of its own keys."""

from __future__ import annotations

import base64

import pytest

from headrace.java.macs import MAC_ALGORITHMS, is_known, key_bytes, key_size_problem, mac

JEFE = b"Jefe", b"what do ya want for nothing?"


@pytest.mark.parametrize(
    ("algorithm", "code"),
    [
        ("HmacMD5", "750c783e6ab0b503eaa86e310a5db738"),
        ("HmacSHA1", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        ("HmacSHA224", "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44"),
        ("HmacSHA256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ("hmacsha256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            "HmacSHA384",
            (
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"
                "8e2240ca5e69e2c78b3239ecfab21649"
            ),
        ),
        (
            "HmacSHA512",
            (
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
            ),
        ),
        ("HmacSHA3-256", "c7d4072e788877ae3596bbb0da73b887c9171f93095b294ae857fbe2645e1ba5"),
    ],
)
def test_codes_are_those_of_the_rfcs(algorithm: str, code: str) -> None:
    """RFC 2202, RFC 4231 and NIST's examples, the case in which the text is longer than the key."""
    assert code == mac(algorithm, *JEFE).hex()


def test_a_message_may_be_empty() -> None:
    """As Java 17 has computed it."""
    code = base64.b64encode(mac("HmacSHA256", b"key", b""))

    assert b"XV0TlWPJW1lnub2ajJsjOp3ttFByeUzSMtwbdIMmB9A=" == code


def test_every_algorithm_that_is_named_can_be_computed() -> None:
    """And no other is known."""
    assert all(is_known(each) and mac(each, b"k", b"m") for each in MAC_ALGORITHMS)
    assert not is_known("HmacFoo")
    with pytest.raises(ValueError, match="Algorithm HmacFoo not available"):
        mac("HmacFoo", b"k", b"m")


@pytest.mark.parametrize(
    ("algorithm", "bits", "size"),
    [
        ("HmacSHA256", None, 32),
        ("HmacSHA384", None, 48),
        ("HmacSHA512", None, 64),
        ("HmacSHA3-224", None, 28),
        ("HmacSHA1", None, 64),
        ("HmacMD5", None, 64),
        ("HmacSHA256", 40, 5),
        ("HmacSHA256", 41, 6),
        ("HmacMD5", 1, 1),
    ],
)
def test_generated_keys_have_javas_sizes(algorithm: str, bits: int | None, size: int) -> None:
    """Its defaults, and sizes in bits, which need not be whole bytes."""
    assert size == key_bytes(algorithm, bits)


@pytest.mark.parametrize(
    ("algorithm", "bits", "problem"),
    [
        ("HmacSHA256", 39, "Key length must be at least 40 bits"),
        ("HmacSHA3-512", -1, "Key length must be at least 40 bits"),
        ("HmacSHA256", 40, None),
        ("HmacMD5", 0, "Empty key"),
        ("HmacSHA1", 1, None),
    ],
)
def test_sizes_are_limited_as_in_java(algorithm: str, bits: int, problem: str | None) -> None:
    """In its words."""
    assert problem == key_size_problem(algorithm, bits)
