"""Which task reads an object, by the formulas of Aiven's S3 source. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.connect.task import Split
from headrace.connectors.files.distribution import shared_by_name


def java_hash(text: str) -> int:
    """What Java's ``String.hashCode`` gives: 32 bits with a sign, over UTF-16 units."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    hashed = 0
    for at in range(0, len(encoded), 2):
        hashed = (31 * hashed + (encoded[at] | encoded[at + 1] << 8)) & 0xFFFFFFFF
    return hashed - 2**32 if hashed >= 2**31 else hashed


def shared(
    splits: Iterable[tuple[str, Split]], slots: int, number: Callable[[str], int]
) -> list[list[Split]]:
    """At most *slots* non-empty shares of splits, each with its object's key, in the order of these keys.

    What *number* gives for the key decides, by its remainder, which is never negative: Java's ``floorMod``.
    """
    return shared_by_name(splits, slots, lambda key: number(key) % slots)
