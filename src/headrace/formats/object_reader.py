"""What every format gives: the records of one object, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.chunk import Chunk, Resume


class ObjectReader(Protocol):
    """Reads one object from a place on, once, on one thread, in memory that its size does not change.

    The same object gives the same records in the same order, wherever reading begins: a reader that is
    made with the anchor, skip and count of a record returns what follows that record.
    """

    @property
    def value_schema(self) -> Schema | None:
        """The schema of the values, or ``None`` for values without one. Known from the first chunk on."""
        ...

    @property
    def place(self) -> Resume:
        """After the end: the place behind all there is, records that were refused included."""
        ...

    @property
    def cut_short(self) -> bool:
        """After the end: whether the object ended before the place where it should."""
        ...

    def constants(self) -> Mapping[str, OffsetValue]:
        """What a later reader must know to go on in the middle; part of every record's offset."""
        ...

    def next_chunk(self) -> Chunk | None:
        """The next records, at least one; ``None`` when there are no more, now and ever after.

        Raises :class:`~headrace.formats.unreadable.UnreadableRecordError` for a record that
        cannot be read, unless it was read before; the next call goes on behind it, and it counts as a record. Several
        that cannot be told apart are raised together; how many they count as, the place behind them says.
        Raises :class:`~headrace.formats.damage.DamagedObjectError`, each time, when nothing behind
        a place can be read; another :class:`~headrace.connect.errors.RecordError`, with the object and the
        position, where the end of a record is not there yet; :class:`~headrace.connect.errors.TaskFailedError`
        for what a person has to mend, and ``OSError`` when the store fails.
        """
        ...

    def close(self) -> None:
        """Close the object; called once, also after an error."""
        ...
