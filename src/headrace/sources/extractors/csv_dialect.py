"""How a CSV file is written, and what its fields are."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import Any

FIELD_TYPES = ("string", "integer", "number", "boolean")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    """The characters with a meaning ("" for none), where names come from, and types that are not strings.

    A doubled quote inside a quoted field is always one quote.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    header: bool = True
    names: tuple[str, ...] = ()
    null: str | None = None
    types: tuple[tuple[str, str], ...] = ()

    def signature(self) -> str:
        """A short text that differs when a file would be cut or understood differently."""
        parts: list[object] = [self.delimiter, self.quote, self.escape, self.header, *self.names]
        parts += ["null", self.null, "types", *map(list, self.types)]
        return f"csv {json.dumps(parts, ensure_ascii=False, separators=(',', ':'))}"

    def reader_options(self) -> dict[str, Any]:
        """What Python's csv reader calls the same."""
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote or None,
            "quoting": csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            "escapechar": self.escape or None,
        }
