"""Java's message authentication codes (``javax.crypto.Mac``), and the keys that its ``KeyGenerator`` makes for them. Pure."""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple


class _Algorithm(NamedTuple):
    hash_name: str
    key_bits: int
    least_key_bits: int


# Of the HMACs of Java's own provider, those whose hash every Python has.
_ALGORITHMS: Final = {
    "HmacMD5": _Algorithm("md5", 512, 1),
    "HmacSHA1": _Algorithm("sha1", 512, 1),
    **{
        f"HmacSHA{family}{bits}": _Algorithm(f"sha{family.replace('-', '_')}{bits}", bits, 40)
        for family in ("", "3-")
        for bits in (224, 256, 384, 512)
    },
}
MAC_ALGORITHMS: Final = tuple(_ALGORITHMS)
"""Java's names of the algorithms that are known here; their case does not matter."""

_BY_NAME: Final = {name.upper(): algorithm for name, algorithm in _ALGORITHMS.items()}


def is_known(algorithm: str) -> bool:
    """Whether it can be computed here."""
    return algorithm.upper() in _BY_NAME


def mac(algorithm: str, key: bytes, message: bytes) -> bytes:
    """The code of *message*. Raises ``ValueError`` with Java's sentence for an unknown algorithm."""
    return hmac.digest(key, message, _found(algorithm).hash_name)


def key_size_problem(algorithm: str, bits: int) -> str | None:
    """Why a key of the known *algorithm* cannot have so many *bits*, in Java's words; ``None`` when it can."""
    least = _found(algorithm).least_key_bits
    if bits >= least:
        return None
    return "Empty key" if least == 1 else f"Key length must be at least {least} bits"


def key_bytes(algorithm: str, bits: int | None = None) -> int:
    """How many bytes a generated key has; without *bits*, as many as Java's library gives one of the known *algorithm*."""
    return ((bits or _found(algorithm).key_bits) + 7) // 8


def _found(algorithm: str) -> _Algorithm:
    found = _BY_NAME.get(algorithm.upper())
    if found is None:
        raise ValueError(f"Algorithm {algorithm} not available")
    return found
