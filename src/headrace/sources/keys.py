"""Native keys: what identifies an object of a source, and their text."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar


class Ordered(Protocol):
    """A native key: hashable, immutable, and totally ordered among its like."""

    def __lt__(self, other: Any, /) -> bool: ...  # noqa: ANN401 (a key compares with its like only)

    def __hash__(self) -> int: ...


K = TypeVar("K", bound=Ordered)


class KeyCodec(Protocol[K]):
    """Native keys as text and back: ``decode(encode(key)) == key``, and the order is that of the keys."""

    def encode(self, key: K) -> str:
        """The text of *key*; the same for equal keys."""
        ...

    def decode(self, text: str) -> K:
        """The key that *text* stands for; raises ``ValueError`` for any other text."""
        ...


class TextKeys:
    """Keys that are text already."""

    def encode(self, key: str) -> str:
        """See :class:`KeyCodec`."""
        return key

    def decode(self, text: str) -> str:
        """See :class:`KeyCodec`."""
        return text


class NumberKeys:
    """Keys that are integers of at most 64 bits."""

    def encode(self, key: int) -> str:
        """See :class:`KeyCodec`."""
        return str(key)

    def decode(self, text: str) -> int:
        """See :class:`KeyCodec`."""
        return int(text)
