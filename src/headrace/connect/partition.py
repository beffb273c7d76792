"""Source partitions and source offsets: where a record came from, and how far a source has been read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeVar, cast

OffsetValue = None | bool | int | float | str | bytes
"""What a value of a source partition or a source offset may be; integers have at most 64 bits."""

SourceOffset = Mapping[str, OffsetValue]
"""A position inside one source partition. The reading side resumes *after* what it describes."""

RECORD_COUNT: Final = "recordCount"
"""The optional entry of a source offset with the number of records of its source partition up to there."""

_INT64 = range(-(2**63), 2**63)
_Key = TypeVar("_Key")
_Value_co = TypeVar("_Value_co", covariant=True)


class SourcePartition(Mapping[str, OffsetValue]):
    """The name of an independent stream of records inside a source, such as one file.

    An immutable mapping that can be a dictionary's key. ``True``, ``1`` and ``1.0`` are three different
    values here, as they are in the offsets topic. Made by connector authors and by the offset codec;
    raises ``TypeError`` or ``ValueError`` at once for what the offsets topic cannot hold.
    """

    __slots__ = ("_hash", "_values")

    def __init__(
        self, values: Mapping[str, OffsetValue] | None = None, /, **named: OffsetValue
    ) -> None:
        self._values: dict[str, OffsetValue] = {**values, **named} if values else named
        checked_values(self._values, "source partition")
        self._hash: int | None = None

    def __getitem__(self, key: str) -> OffsetValue:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        # Not in the constructor: of a million partitions, most are only looked at.
        if self._hash is None:
            self._hash = hash(frozenset(self._identity()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourcePartition):
            return NotImplemented
        return frozenset(self._identity()) == frozenset(other._identity())

    def __repr__(self) -> str:
        return f"SourcePartition({self._values!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return SourcePartition, (self._values,)

    def items(self) -> ItemsView[str, OffsetValue]:
        """See :class:`~collections.abc.Mapping`."""
        return self._values.items()

    def _identity(self) -> Iterator[tuple[str, type, OffsetValue]]:
        return ((key, type(value), value) for key, value in self._values.items())


def as_partition(given: object) -> SourcePartition:
    """*given* as a source partition, unless it is one already; raises ``TypeError`` for what is not a mapping."""
    if isinstance(given, SourcePartition):
        return given
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise TypeError(
            f"A source partition must be a SourcePartition or another mapping of names to values, not of "
            f"type {kind}: SourcePartition(file='a.txt')."
        )
    return SourcePartition(cast("Mapping[str, OffsetValue]", given))


def checked_values(values: Mapping[str, OffsetValue], noun: str) -> None:
    """Raise ``TypeError`` or ``ValueError`` when *values* cannot be stored as a *noun*."""
    for key, value in values.items():
        if type(key) is str and type(value) is str:
            continue
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"A {noun} has the key {key!r}; keys must be strings.")
        if not isinstance(value, None | bool | int | float | str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"A {noun} has {value!r} under {key!r}; "
                "only null, booleans, numbers, strings and bytes can be stored."
            )
        if isinstance(value, int) and value not in _INT64:
            raise ValueError(f"A {noun} has {value} under {key!r}; integers may have 64 bits.")


class OffsetReader(Protocol):
    """Reads committed source offsets. Given to connectors (on the driver) and tasks (in a slot).

    Every read sees all that was committed before the micro-batch began. May block on the network;
    raises :class:`~headrace.connect.errors.RetriableError` when the store does not answer in time.
    ``None`` means that nothing is stored for the partition, never that reading failed.
    """

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of *partition*, or ``None``."""
        ...

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """The committed offsets of several partitions, in one exchange with the store."""
        ...


class KnownOffsets(OffsetReader, Protocol):
    """The committed offsets of one connector, as the driver knows them: every source partition that has one."""

    def known(self) -> Mapping[SourcePartition, SourceOffset]:
        """All committed offsets of the connector, as a snapshot that does not change."""
        ...


class Paired(Mapping[_Key, _Value_co]):
    """A mapping that makes its values on demand, and can iterate over its items without a look-up for each."""

    @abstractmethod
    def pairs(self) -> Iterator[tuple[_Key, _Value_co]]:
        """Each key with its value."""

    def items(self) -> ItemsView[_Key, _Value_co]:
        """See :class:`~collections.abc.Mapping`; iterates over :meth:`pairs`."""
        return _Items(self)


class _Items(ItemsView[_Key, _Value_co]):
    def __init__(self, owner: Paired[_Key, _Value_co]) -> None:
        super().__init__(owner)
        self._owner = owner

    def __iter__(self) -> Iterator[tuple[_Key, _Value_co]]:
        return self._owner.pairs()


class OffsetsByNames(Paired[SourcePartition, SourceOffset]):
    """Offsets that are indexed by the names in their partitions; ``KnownOffsets.known`` may return one."""

    @abstractmethod
    def of_names(self, names: frozenset[str]) -> Mapping[SourcePartition, SourceOffset]:
        """The offsets whose partitions have exactly *names*."""


def of_names(
    known: Mapping[SourcePartition, SourceOffset], names: Iterable[str]
) -> Mapping[SourcePartition, SourceOffset]:
    """Those of *known* whose partitions have exactly *names*; called by connectors, about once for each plan.

    There may be millions, of which only a few have these names: :class:`OffsetsByNames` need not look at all of them.
    """
    wanted = frozenset(names)
    if isinstance(known, OffsetsByNames):
        return known.of_names(wanted)
    return {
        partition: offset for partition, offset in known.items() if wanted == frozenset(partition)
    }
