"""What stores check: a key before they ask, the version they find, the copy they made."""

from __future__ import annotations

from typing import NamedTuple

from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectChangedError,
    StoreUnavailableError,
)
from headrace.stores.store import StoredObject

_LONGEST_KEY = 1024


class KeyUnit(NamedTuple):
    """What a store counts the length of keys in: *name*, of *width* bytes in *encoding*."""

    name: str
    encoding: str
    width: int


BYTES = KeyUnit("bytes", "utf-8", 1)
CHARACTERS = KeyUnit("characters", "utf-16-le", 2)


def check_length(store: str, key: str, unit: KeyUnit = BYTES) -> None:
    """Raise ``KeyNotRepresentableError`` for a *key* that is empty, longer than 1024 of *unit*, or no Unicode."""
    try:
        length = len(key.encode(unit.encoding)) // unit.width
    except UnicodeEncodeError:
        raise KeyNotRepresentableError(store, key, "The key is not UTF-8.") from None
    if not 0 < length <= _LONGEST_KEY:
        raise KeyNotRepresentableError(
            store, key, f"A key has 1 to {_LONGEST_KEY} {unit.name}, but this one {length}."
        )


def check_version(store: str, key: str, *, found: str, version: str) -> None:
    """Raise ``ObjectChangedError`` where the object is *found* to be another one than *version*."""
    if found != version:
        raise ObjectChangedError(store, key, f"It is {found} by now, not {version}.")


def whole_copy(store: str, key: str, copied: StoredObject, size: int) -> StoredObject:
    """*copied*, which was made of *key*; raises ``StoreUnavailableError`` where it has another *size*."""
    if copied.size != size:
        raise StoreUnavailableError(
            f"{store}: {copied.key!r}: The copy of {key!r} has {copied.size} bytes, but should have {size}."
        )
    return copied
