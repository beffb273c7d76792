"""What every extractor does: rows of bytes in, values of records out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.rows import Int64Array, RowBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that is not what the format asks for.

    *fatal* says that the rest of the object cannot be understood without it.
    """

    row: int
    reason: str
    advice: str | None = None
    fatal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The values of the records among some rows, up to the first bad one.

    *rows* are the indexes of the rows that are records, in order; ``None`` means every row before *bad*.
    Rows left out (blank lines, a header) do not count as records.
    """

    values: pa.Array
    rows: Int64Array | None = None
    bad: BadRow | None = None


class RowExtractor(Protocol):
    """Understands the rows of one object; made again for each, and called block by block on one thread."""

    @property
    def value_schema(self) -> Schema | None:
        """The schema of the values, or ``None`` for values without one."""
        ...

    @property
    def needs_header(self) -> bool:
        """Whether the next row that is not blank is a header, without which no row behind it is understood."""
        ...

    def extract(self, rows: RowBlock) -> Extracted:
        """The records among *rows*, which follow those of the last call.

        Copies what it returns. The same rows give the same records, however they are cut into blocks;
        after a bad row it is called again with the rows behind it.
        """
        ...

    def constants(self) -> Mapping[str, OffsetValue]:
        """What a later reader must know to go on in the middle; part of every record's offset."""
        ...
