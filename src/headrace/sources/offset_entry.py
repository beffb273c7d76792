"""What is stored about one object: which it is, and how far it has been read."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, Self

from headrace.connect.errors import OffsetsError
from headrace.connect.partition import RECORD_COUNT, OffsetValue, SourceOffset, SourcePartition
from headrace.sources.entry_codec import loaded, stored

VERSION, DONE = "version", "done"
FORMAT = "format"
QUARANTINED = "quarantined"
"""Holds the reason why an object is read no further."""

ANCHOR, SKIP = "anchor", "skip"
PLACE: Final = frozenset({RECORD_COUNT, ANCHOR, SKIP})
"""What moves with every record in its offset."""

KEPT: Final = PLACE | {VERSION, FORMAT, DONE, QUARANTINED}
"""The properties of an offset that are the framework's own."""


class OffsetKey:
    """Names one object in the offsets topic; equal and of equal hash when its entries are.

    Has no record count in it. Raises ``TypeError`` or ``ValueError`` for what cannot be stored. Bytes, lists and
    maps are stored as tagged text, as in an :class:`OffsetEntry`.
    """

    def __init__(self, entries: Mapping[str, object]) -> None:
        self._partition = SourcePartition(stored(entries))

    @property
    def partition(self) -> SourcePartition:
        """The source partition of the object's records; immutable."""
        return self._partition

    def partition_map(self) -> dict[str, Any]:
        """A copy of the entries."""
        return loaded(self._partition)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetKey) and self._partition == other._partition

    def __hash__(self) -> int:
        return hash(self._partition)

    def __repr__(self) -> str:
        return f"OffsetKey({self.partition_map()!r})"


class OffsetEntry:
    """The offset of one object: its key, how many of its records were sent, and what its author adds.

    *properties* may hold null, booleans, integers of 64 bits, finite floats, strings, bytes, and lists and
    maps of these. *restricted* are properties that :meth:`set` refuses, besides those of the key and the
    framework's own: recordCount, anchor, skip, version, format, done and quarantined. Used on one thread; copies
    what it is given and what it gives.
    """

    def __init__(
        self,
        key: OffsetKey,
        properties: Mapping[str, object] | None = None,
        *,
        restricted: frozenset[str] = frozenset(),
    ) -> None:
        given = dict(properties or {})
        self._key = key
        self._restricted = restricted | set(key.partition) | KEPT
        self._count = _counted(given.pop(RECORD_COUNT, 0))
        self._own = {
            name: copy.deepcopy(value) for name, value in given.items() if name not in key.partition
        }
        stored(self._own)

    def from_properties(self, properties: Mapping[str, object]) -> Self:
        """An entry of the same kind that holds a copy of *properties*, those of its key among them.

        Raises :class:`~headrace.connect.errors.OffsetsError` when one of the key's is missing.
        """
        missing = [name for name in self._key.partition if name not in properties]
        if missing:
            raise OffsetsError(f"The offset {dict(properties)} lacks {', '.join(missing)}.")
        key = {name: properties[name] for name in self._key.partition}
        return type(self)(OffsetKey(key), properties, restricted=self._restricted)

    def properties(self) -> dict[str, object]:
        """A copy of everything: the key's entries, the record count and the author's own."""
        return {
            **self._key.partition_map(),
            **copy.deepcopy(self._own),
            RECORD_COUNT: self._count,
        }

    def get(self, name: str) -> Any:  # noqa: ANN401 (the author knows what they stored)
        """A copy of the property *name*, ``None`` when it is not set; raises ``TypeError`` for no name."""
        if name is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise TypeError("A property has a name.")
        return self.properties().get(name)

    def set(self, name: str, value: object) -> None:
        """Set the property *name*; raises ``ValueError`` for a restricted one or a value that cannot be stored.

        Raises ``TypeError`` for what is no name.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"A property has a name, which is a string, and not {name!r}.")
        if name in self._restricted:
            raise ValueError(f"The property {name!r} is kept by the framework and cannot be set.")
        stored({name: value})
        self._own[name] = copy.deepcopy(value)

    @property
    def key(self) -> OffsetKey:
        """What names the object; immutable."""
        return self._key

    @property
    def record_count(self) -> int:
        """How many records of the object were sent, this one included."""
        return self._count

    def increment_record_count(self) -> None:
        """Count one more record."""
        self._count += 1

    def own_offset(self) -> dict[str, OffsetValue]:
        """The author's own properties as they are stored, without those of the key and the framework's."""
        return stored({name: value for name, value in self._own.items() if name not in KEPT})


def is_closed(offset: SourceOffset) -> bool:
    """Whether nothing more is read of an object with *offset*: it was read to its end, or is in quarantine."""
    return bool(offset.get(DONE) or offset.get(QUARANTINED))


def entry_data(partition: SourcePartition, offset: Mapping[str, OffsetValue]) -> dict[str, object]:
    """The data of an entry that was stored as *offset* of *partition*: what its properties were."""
    own = {name: value for name, value in offset.items() if name not in KEPT - {RECORD_COUNT}}
    return {**loaded(partition), **loaded(own)}


def _counted(count: object) -> int:
    # Another tool may have written a number with a point.
    if isinstance(count, int | float) and not isinstance(count, bool) and count == int(count) >= 0:
        return int(count)
    raise OffsetsError(f"'recordCount' must be a whole number from 0 on, but it is {count!r}.")
