"""Records of an Avro block, found and made columns without a Python object for each value.

Avro has no table of where records or values begin: only who goes through them, value by value, knows. This is
done here by a *scan*, a Python function generated from the schema that does nothing but move on and note places;
numpy and Arrow then make columns of the places of thousands of records. Generated, because a loop over the
fields with a decision for each would take longer than fastavro's compiled one, of which the cost is the objects.
The function is made of numbers alone; no word of a file's header gets into it.

A scan is strict and knows healthy bytes only. Whatever is unusual (damage, numbers in more bytes than they can
take, values that do not fit) makes it give up, and the records are read by fastavro, which decides what it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.formats.avro.columns import Column, NullableColumn, StructColumn
from headrace.formats.avro.leaves import LeafColumn, spread
from headrace.formats.avro.primitives import booleans, floats, integers, pieces
from headrace.formats.rows import Bytes, Int64Array

UNUSUAL = (IndexError, ValueError)
"""What a scan raises when it gives up."""
FieldPlaces = NDArray[np.int64]
"""A row of places for each record, the record's own first."""
KeptPlaces = NDArray[np.int32]
"""The same in half the memory."""
_MOST_KEPT_BYTES: Final = np.iinfo(np.int32).max

_ScanFunction = Callable[[bytes, int, int], tuple[list[int], int]]
# Functions take long to compile, or cannot be, for schemas beyond what people write.
_MOST_FIELDS, _DEEPEST = 500, 20
_LONGEST_LENGTH = 63
# So many places are noted at a time, which are Python objects first.
_MOST_PLACES = 1 << 16
_VALUE_BYTES = 8
_SIZES: Final = {"boolean": 1, "float": 4, "double": 8}
_FLOATS: Final = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


class Scan:
    """The scan of records of one schema. Used by one thread."""

    def __init__(self, part: _Part, function: _ScanFunction, width: int) -> None:
        self._part = part
        self.function = function
        self.width: Final = width
        """How many places it notes for a record."""

    def column_bytes(self, count: int) -> int:
        """How many bytes *count* records take as a column, about, besides those of their values in Avro."""
        return count * self.width * _VALUE_BYTES

    def places(self, octets: bytes, start: int, count: int) -> tuple[FieldPlaces, int]:
        """The places of *count* records from byte *start* on, and where they end.

        Raises one of ``UNUSUAL`` when one of them is not whole or not as usual. Called for each block,
        or part of one.
        """
        found, end = self.function(octets, start, count)
        if end > len(octets):
            raise IndexError("the bytes end too early")
        return np.array(found, np.int64).reshape(count, self.width), end

    def portion(self) -> int:
        """How many records are scanned at a time."""
        return max(1, _MOST_PLACES // self.width)

    def whole(self, octets: bytes, count: int) -> KeptPlaces | None:
        """The places of the *count* records that *octets* are made of; ``None`` when they are not exactly these.

        Also when there would be more places than bytes: they are kept for as long as the bytes.
        """
        if self.width * count > len(octets) or len(octets) > _MOST_KEPT_BYTES:
            return None
        kept, end = np.empty((count, self.width), np.int32), 0
        try:
            for start in range(0, count, self.portion()):
                part = min(self.portion(), count - start)
                kept[start : start + part], end = self.places(octets, end, part)
        except UNUSUAL:
            return None
        return kept if end == len(octets) else None

    def build(self, octets: Bytes, places: FieldPlaces) -> pa.Array:
        """The column of the records at *places*; raises one of ``leaves.UNFIT`` when one is unusual."""
        return self._part.build(octets, np.ascontiguousarray(places.T))


def scan_of(column: Column) -> Scan | None:
    """The scan for values of *column*; ``None`` when there is none for its type. Called once per object.

    There is one for records, also in one another, of numbers, truths, bytes, texts, enums, fixed and
    logical types over them, each alone or in a union with null.
    """
    source = _Source()
    part = source.part_of(column, 0)
    if part is None or source.width not in range(1, _MOST_FIELDS):
        return None
    return Scan(part, _compiled(source.text()), source.width)


class _Part(Protocol):
    """A value's way out of its bytes."""

    def build(self, octets: Bytes, places: NDArray[np.int64]) -> pa.Array:
        """The column of the values; *places* has a row for each place in a record."""
        ...


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value without parts, *shift* bytes behind its place."""

    column: LeafColumn
    place: int
    shift: int

    def build(self, octets: Bytes, places: NDArray[np.int64]) -> pa.Array:
        return self.column.fitted(
            _found(self.column.layout, octets, places[self.place] + self.shift)
        )


@dataclass(frozen=True, slots=True)
class _Nullable:
    """A union with null: *present* is the byte before a value."""

    inner: _Part
    place: int
    present: int

    def build(self, octets: Bytes, places: NDArray[np.int64]) -> pa.Array:
        present = octets[places[self.place]] == self.present
        if present.all():
            return self.inner.build(octets, places)
        return spread(self.inner.build(octets, places[:, present]), present)


@dataclass(frozen=True, slots=True)
class _Record:
    column: StructColumn
    parts: Sequence[_Part]

    def build(self, octets: Bytes, places: NDArray[np.int64]) -> pa.Array:
        return self.column.of_children([each.build(octets, places) for each in self.parts])


class _Source:
    """The text of a scan, which grows part by part; its ``b`` are the bytes and ``p`` the place in them."""

    def __init__(self) -> None:
        self.width = 0
        self._lines = list[str]()

    def part_of(self, column: Column, depth: int) -> _Part | None:
        """Write what passes over a value of *column*; ``None`` when that cannot be told."""
        if depth > _DEEPEST or self.width > _MOST_FIELDS:
            return None
        if isinstance(column, StructColumn) and not column.sparse:
            return self._record(column, depth)
        if isinstance(column, NullableColumn):
            return self._nullable(column, depth)
        if isinstance(column, LeafColumn):
            place = self._place(depth)
            self._pass(column.layout, depth)
            return _Leaf(column, place, 0)
        return None

    def text(self) -> str:
        """The whole of the function."""
        names = [f"f{place}" for place in range(self.width)]
        return "\n".join(
            (
                "def scan(b, p, count):",
                "    found = []",
                # A place in a record that is null is that of the record before, and no one looks at it.
                f"    {' = '.join(names)} = p",
                "    for _ in range(count):",
                *self._lines,
                f"        found += ({', '.join(names)},)",
                "    return found, p",
            )
        )

    def _record(self, column: StructColumn, depth: int) -> _Part | None:
        parts = list[_Part]()
        for _, member in column.members:
            part = self.part_of(member, depth)
            if part is None:
                return None
            parts.append(part)
        return _Record(column, parts) if parts else None

    def _nullable(self, column: NullableColumn, depth: int) -> _Part | None:
        if column.null is None:
            return None
        place, present = self._place(depth), 2 * (1 - column.null)
        self._write(depth, f"if b[p] == {present}:")
        self._write(depth + 1, "p += 1")
        if isinstance(column.inner, LeafColumn):
            self._pass(column.inner.layout, depth + 1)
            inner = _Leaf(column.inner, place, 1)
        else:
            inner = self.part_of(column.inner, depth + 1)
        self._write(depth, f"elif b[p] == {2 * column.null}: p += 1")
        self._write(depth, "else: raise ValueError")
        return None if inner is None else _Nullable(inner, place, present)

    def _place(self, depth: int) -> int:
        self.width += 1
        self._write(depth, f"f{self.width - 1} = p")
        return self.width - 1

    def _pass(self, layout: object, depth: int) -> None:
        if layout in ("int", "long"):
            self._write(depth, "while b[p] > 127: p += 1")
            self._write(depth, "p += 1")
        elif layout == "bytes":
            self._write(depth, "step = steps[b[p]]")
            self._write(depth, "if step > 0: p += step")
            self._write(depth, "elif step and b[p + 1] < 128: p += (b[p + 1] << 6) - step")
            self._write(depth, "else: p = behind_long(b, p)")
        else:
            self._write(depth, f"p += {_size(layout)}")

    def _write(self, depth: int, line: str) -> None:
        self._lines.append("    " * (2 + depth) + line)


def _size(layout: object) -> int:
    return layout["size"] if isinstance(layout, dict) else _SIZES[str(layout)]


def _found(layout: object, octets: Bytes, at: Int64Array) -> pa.Array:
    """The values at *at*, as Arrow has what they are written as."""
    if layout in ("int", "long"):
        return pa.array(integers(octets, at)[0])
    if layout == "bytes":
        sizes, starts = integers(octets, at)
        return pieces(octets, starts, starts + sizes)
    if layout == "boolean":
        return booleans(octets, at)
    if isinstance(layout, dict):
        return pieces(octets, at, at + _size(layout))
    return floats(octets, at, _FLOATS[str(layout)])


def _step(first: int) -> int:
    """How far it is behind a text whose length begins with the byte *first*.

    Negative, for lengths of two bytes, without what the second one adds; 0 for lengths below 0.
    """
    if first & 1:
        return 0
    return 1 + first // 2 if first < 128 else -(2 + (first & 0x7F) // 2)  # noqa: PLR2004 (the bit that says that more follow)


def _behind_long(octets: bytes, place: int) -> int:
    """The place behind the text at *place*, whatever its length; raises ``ValueError`` when that is none."""
    length = 0
    for shift in range(0, _LONGEST_LENGTH, 7):
        octet = octets[place]
        place += 1
        length |= (octet & 0x7F) << shift
        if octet < 0x80:  # noqa: PLR2004 (as above)
            break
    else:
        raise ValueError("a length is too long")
    if length & 1:
        raise ValueError("a length is negative")
    return place + length // 2


_STEPS: Final = [_step(first) for first in range(256)]


@functools.lru_cache(maxsize=32)
def _compiled(text: str) -> _ScanFunction:
    """The function in *text*. Objects of one schema, which often come together, share it."""
    names: dict[str, object] = {"steps": _STEPS, "behind_long": _behind_long}
    exec(text, names)  # noqa: S102 (made here, and of numbers alone)
    return names["scan"]  # pyright: ignore[reportReturnType]
