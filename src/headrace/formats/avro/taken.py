"""Records that were taken out of Avro blocks, but not yet passed on."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa

from headrace.formats.avro.datums import DatumReader
from headrace.formats.avro.leaves import Values
from headrace.formats.avro.scan import FieldPlaces, Scan
from headrace.formats.rows import Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPositions:
    """Where records stand in their file.

    Record *i* is the ``numbers[i]``-th of the block at byte ``starts[i]``, and reading goes on ``skips[i]``
    records behind ``anchors[i]``.
    """

    starts: Int64Array
    numbers: Int64Array
    anchors: Int64Array
    skips: Int64Array

    def __len__(self) -> int:
        return len(self.starts)

    def between(self, first: int, stop: int | None) -> RecordPositions:
        """Those of the records from index *first* to before *stop*."""
        part = slice(first, stop)
        return RecordPositions(
            starts=self.starts[part],
            numbers=self.numbers[part],
            anchors=self.anchors[part],
            skips=self.skips[part],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Records as values. *octets* are the bytes of *gone* other records, and then of these."""

    values: Values
    octets: memoryview
    gone: int
    positions: RecordPositions

    def __len__(self) -> int:
        return len(self.values)

    def behind(self, count: int) -> Taken:
        """These without the first *count*."""
        return Taken(
            values=self.values[count:],
            octets=self.octets,
            gone=self.gone + count,
            positions=self.positions.between(count, None),
        )

    def raw(self, index: int, datums: DatumReader) -> bytes:
        """The bytes of record *index*; those before it are read once more."""
        block = io.BytesIO(self.octets)
        datums.read(block, self.gone + index)
        start = block.tell()
        datums.read(block, 1)
        return bytes(self.octets[start : block.tell()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Records that are a *column* already, so that each of them fits."""

    column: pa.Array
    positions: RecordPositions

    def __len__(self) -> int:
        return len(self.column)

    def behind(self, count: int) -> Built:
        """These without the first *count*."""
        return Built(column=self.column[count:], positions=self.positions.between(count, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """Records that *scan* has been over: *places* are those of each in *octets*."""

    scan: Scan
    places: FieldPlaces
    octets: memoryview
    positions: RecordPositions

    def __len__(self) -> int:
        return len(self.places)

    def behind(self, count: int) -> Scanned:
        """These without the first *count*."""
        return Scanned(
            scan=self.scan,
            places=self.places[count:],
            octets=self.octets,
            positions=self.positions.between(count, None),
        )

    @property
    def size(self) -> int:
        """How many bytes they take as a column, about."""
        if not len(self):
            return 0
        return len(self.octets) - int(self.places[0, 0]) + self.scan.column_bytes(len(self))

    def built(self) -> pa.Array:
        """Their column; raises one of ``leaves.UNFIT`` when one is not as usual."""
        return self.scan.build(np.frombuffer(self.octets, np.uint8), self.places)

    def read(self, count: int, datums: DatumReader) -> Taken:
        """The first *count* of them as values."""
        octets = self.octets[int(self.places[0, 0]) :]
        values, reason = datums.read(io.BytesIO(octets), min(count, len(self)))
        if reason is not None:
            raise RuntimeError(f"a scan took for records what cannot be read: {reason}")
        positions = self.positions.between(0, count)
        return Taken(values=values, octets=octets, gone=0, positions=positions)


def joined(parts: Sequence[Scanned]) -> Scanned:
    """The records of all *parts* in order, of which there is one at least."""
    if len(parts) == 1:
        return parts[0]
    bases = accumulate((len(each.octets) for each in parts), initial=0)
    places = [each.places + base for each, base in zip(parts, bases, strict=False)]
    positions = [each.positions for each in parts]
    return Scanned(
        scan=parts[0].scan,
        places=np.concatenate(places),
        octets=memoryview(b"".join(each.octets for each in parts)),
        positions=RecordPositions(
            starts=np.concatenate([each.starts for each in positions]),
            numbers=np.concatenate([each.numbers for each in positions]),
            anchors=np.concatenate([each.anchors for each in positions]),
            skips=np.concatenate([each.skips for each in positions]),
        ),
    )
