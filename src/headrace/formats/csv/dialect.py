"""How a CSV file is written, and what its fields are."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from headrace.formats.csv.types import FieldType, field_type

DEFAULT_SAMPLE_BYTES: Final = 1024 * 1024

Ragged = Literal["error", "fill", "cut", "fit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    """The characters with a meaning ("" for none), where names come from, and types that are not strings.

    A doubled quote inside a quoted field is always one quote. *infer* gives types to the fields without
    one, by what the first *sample_bytes* of a file hold. *structs* makes structs with a schema of rows, and
    not JSON objects. *ragged* says what becomes of rows that have not as many fields as there are names: they are
    bad; or short ones have nulls (fill), long ones lose what is too much (cut), or both (fit).

    A line that begins with *comment* outside quotes is no row, and neither are the first *skip_lines* lines of a
    file, whatever is in them. *trim* drops the blanks around fields, those around their quotes, too.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    header: bool = True
    names: tuple[str, ...] = ()
    null: str | None = None
    types: tuple[tuple[str, str], ...] = ()
    infer: bool = False
    sample_bytes: int = DEFAULT_SAMPLE_BYTES
    structs: bool = False
    ragged: Ragged = "error"
    comment: str = ""
    skip_lines: int = 0
    trim: bool = False

    def signature(self) -> str:
        """A short text that differs when a file would be cut or understood differently.

        Not by *ragged*, which says what is done about rows that could not be read before, nor by the
        sample's size: what was inferred is kept with each offset.
        """
        parts: list[object] = [self.delimiter, self.quote, self.escape, self.header, *self.names]
        parts += ["null", self.null, "types", *map(list, self.types)]
        parts += ["infer"] if self.infer else []
        parts += ["structs"] if self.structs else []
        parts += ["comment", self.comment] if self.comment else []
        parts += ["skip", self.skip_lines] if self.skip_lines else []
        parts += ["trim"] if self.trim else []
        return f"csv {json.dumps(parts, ensure_ascii=False, separators=(',', ':'))}"

    @property
    def fills(self) -> bool:
        """Whether a row with too few fields is one with nulls."""
        return self.ragged in ("fill", "fit")

    @property
    def cuts(self) -> bool:
        """Whether a row with too many fields is one without those behind the last name."""
        return self.ragged in ("cut", "fit")

    @property
    def blanks(self) -> str:
        """What is dropped around fields: spaces and tabs that have no other meaning; nothing without *trim*."""
        meant = (self.delimiter, self.quote, self.escape)
        return "".join(each for each in " \t" if each not in meant) if self.trim else ""

    def declared(self) -> dict[str, FieldType]:
        """The types by the names of their fields."""
        found = {name: field_type(kind) for name, kind in self.types}
        return {name: kind for name, kind in found.items() if kind is not None}

    def reader_options(self) -> dict[str, Any]:
        """What Python's csv reader calls the same."""
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote or None,
            "quoting": csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            "escapechar": self.escape or None,
        }
