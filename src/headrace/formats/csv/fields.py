"""The fields that the rows of one CSV file have: names, types, nulls."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.types import FieldType, field_type

_STRING = field_type("string")
_SHOWN = 80


class CsvFields:
    """*names*, and their types: those that *dialect* declares, else *inferred* ones, else strings.

    The *inferred* ones are in the order of the names.
    """

    def __init__(
        self,
        names: Sequence[str],
        dialect: CsvDialect,
        inferred: Sequence[FieldType] | None = None,
    ) -> None:
        assert _STRING is not None
        known = {**dict(zip(names, inferred or (), strict=False)), **dialect.declared()}
        self.names = tuple(names)
        self.types = tuple(known.get(name, _STRING) for name in names)
        self._null = dialect.null
        self._as_values = dialect.structs

    def nulls(self, kind: FieldType, texts: pa.StringArray) -> pa.BooleanArray | None:
        """Which of *texts* are null: missing fields, those that say so, and empty ones that are no strings.

        ``None`` when none can be.
        """
        told = [] if self._null is None else [pc.equal(texts, self._null)]
        if kind.pattern is not None:
            told.append(pc.equal(texts, ""))
        if not told:
            return texts.is_null() if texts.null_count else None
        return (told[0] if len(told) == 1 else pc.or_(*told)).fill_null(True)  # noqa: FBT003

    def first_wrong(self, columns: Sequence[pa.StringArray]) -> tuple[int, str] | None:
        """The first row with a field that is not of its type, and a sentence about it."""
        found = list[tuple[int, str]]()
        for name, kind, texts in zip(self.names, self.types, columns, strict=True):
            wrong = self._wrong_in(kind, texts)
            if wrong is not None:
                row, told = wrong
                shown = texts[row].as_py()[:_SHOWN]
                found.append((row, f"The field {name!r} holds {shown!r}, which {told}."))
        return min(found, default=None)

    def _wrong_in(self, kind: FieldType, texts: pa.StringArray) -> tuple[int, str] | None:
        if kind.pattern is None:
            return None
        nulls = self.nulls(kind, texts)
        right = pc.match_substring_regex(texts, kind.pattern)
        row = pc.index(right if nulls is None else pc.or_kleene(right, nulls), False).as_py()
        if self._as_values:
            # Only what is written as a number at all can be asked whether its type holds it.
            numbers = texts if row < 0 else texts.slice(0, row)
            if nulls is not None:
                numbers = pc.if_else(nulls.slice(0, len(numbers)), None, numbers)
            holds = kind.holds(numbers)
            lost = -1 if holds is None else pc.index(holds, False).as_py()
            if lost >= 0:
                return lost, kind.refusal
        return None if row < 0 else (row, f"is not of type {kind.name}")
