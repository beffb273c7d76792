"""The rows of a CSV file as columns of text."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from headrace.formats.csv.blanks import RowTrimmer, filled_rows, without_blanks
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.framing import QuotedFraming
from headrace.formats.line_framing import CARRIAGE_RETURN
from headrace.formats.row_extractor import BadRow
from headrace.formats.rows import Int64Array, RowBlock
from headrace.formats.text import EMPTY, not_utf8

# The csv module's own limit of 128 KiB for a field would undercut the one for rows.
csv.field_size_limit(2**31 - 1)

# Arrow's reader takes longer to begin than so few rows take one by one, and behind a bad one there may be another.
_FEW_ROWS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The fields of some rows, column by column, up to the first *bad* one; *rows* are the indexes of these rows.

    A field that a row lacks is null; no other one is.
    """

    columns: Sequence[pa.StringArray]
    rows: Int64Array
    bad: BadRow | None = None


class CsvRows:
    """Cuts the rows of one file into fields. Blank rows and comments are left out, and so is the header.

    *names* are the fields' names where they are known; without them the first row tells them.
    """

    def __init__(self, dialect: CsvDialect, names: Sequence[str] | None = None) -> None:
        self.names = names
        self.most_fields = 0
        """How many the longest row had of those that were cut."""
        self._dialect = dialect
        self._behind_bad = False
        self._framing = QuotedFraming(dialect)
        self._trimmer = RowTrimmer(dialect) if dialect.blanks else None

    def columns(self, rows: RowBlock) -> Columns:
        """The fields of *rows*, which follow those of the last call; tells the names, too."""
        kept = np.flatnonzero(self._records(rows))
        try:
            if self.names is None and len(kept):
                kept = kept[self._read_names(rows, int(kept[0])) :]
        except _RefusedError as refused:
            return Columns(columns=(), rows=kept[:0], bad=refused.bad)
        if self.names is None or not len(kept):
            return Columns(columns=(), rows=kept[:0])
        width = len(self.names)
        if len(kept) > _FEW_ROWS or not self._behind_bad:
            columns = self._quickly(self._without_comments(rows, kept), len(kept), width)
            if columns is not None:
                self._behind_bad = False
                return Columns(columns=columns, rows=kept)
        found = self._one_by_one(rows, kept, width)
        self._behind_bad = found.bad is not None
        return found

    def _records(self, rows: RowBlock) -> NDArray[np.bool_]:
        """Which of *rows* are neither blank nor comments."""
        found = filled_rows(rows, self._dialect.blanks)
        if self._dialect.comment:
            found &= rows.buffer[rows.starts] != ord(self._dialect.comment)
        return found

    def _without_comments(self, rows: RowBlock, kept: Int64Array) -> RowBlock:
        """The rows from the first one that is *kept* on; those that are not may still be blank ones."""
        comment = self._dialect.comment
        if comment and len(kept) < len(rows) - kept[0]:
            return rows.pick(kept).packed()
        return rows.slice(int(kept[0]))

    def _read_names(self, rows: RowBlock, first: int) -> int:
        """Take the names from row *first* and the settings; returns how many rows that used up."""
        fields = self._first_fields(rows, first)
        names = self._dialect.names
        if not names and self._dialect.header:
            names = tuple(fields)
        names = names or tuple(f"field_{number}" for number in range(1, len(fields) + 1))
        complaint = _names_complaint(names, fields, self._dialect)
        if complaint:
            raise _RefusedError(
                BadRow(row=first, reason=complaint, advice=_NAMES_ADVICE, fatal=True)
            )
        self.names = names
        return 1 if self._dialect.header else 0

    def _first_fields(self, rows: RowBlock, first: int) -> list[str]:
        """The fields of row *first*; where it is a header, nothing behind it can be read without it."""
        try:
            return self._fields(rows, first)
        except _RefusedError as refused:
            bad = dataclasses.replace(refused.bad, fatal=self._dialect.header)
            raise _RefusedError(bad) from refused

    def _quickly(self, rows: RowBlock, count: int, width: int) -> list[pa.StringArray] | None:
        """The columns of *rows* by Arrow's reader, or ``None`` where only the careful way is exact."""
        block = rows.buffer[rows.starts[0] : rows.nexts[-1]]
        quotes = self._framing.quotes(block)
        if self._dialect.escape or not self._framing.regular(quotes, block):
            return None
        returns = np.count_nonzero(block == CARRIAGE_RETURN)
        if returns and returns != np.count_nonzero(rows.nexts - rows.ends == len(b"\r\n")):
            return None
        if not block.all():
            return None
        try:
            table = _parsed(without_blanks(block, quotes, self._dialect), width, self._dialect)
        except pa.ArrowInvalid:
            return None
        if table.num_rows != count:
            return None
        return [column.combine_chunks() for column in table.columns]

    def _one_by_one(self, rows: RowBlock, kept: Int64Array, width: int) -> Columns:
        """The same up to the first bad row, which is returned, too."""
        found = list[Sequence[str | None]]()
        bad = None
        try:
            for row in kept:
                found.append(self._record(rows, int(row), width))
        except _RefusedError as refused:
            bad = refused.bad
        columns = [pa.array(each, pa.utf8()) for each in zip(*found, strict=True)]
        return Columns(columns=columns or [EMPTY] * width, rows=kept[: len(found)], bad=bad)

    def _record(self, rows: RowBlock, row: int, expected: int) -> Sequence[str | None]:
        fields = self._fields(rows, row)
        if len(fields) == expected:
            return fields
        if self._dialect.fills and len(fields) < expected:
            return [*fields, *[None] * (expected - len(fields))]
        if self._dialect.cuts and len(fields) > expected:
            self.most_fields = max(self.most_fields, len(fields))
            return fields[:expected]
        reason = f"This row has {_counted(len(fields))}, but {expected} are expected."
        advice = _SHORT_ADVICE if len(fields) < expected else _LONG_ADVICE
        raise _RefusedError(BadRow(row=row, reason=reason, advice=advice))

    def _fields(self, rows: RowBlock, row: int) -> list[str]:
        raw = rows.row(row)
        try:
            text = raw.decode()
            if "\0" in text:
                raise csv.Error("it holds a NUL byte")
            if self._trimmer is not None:
                text = self._trimmer.trimmed(text)
            return next(csv.reader([text], strict=True, **self._dialect.reader_options()))
        except UnicodeDecodeError as error:
            raise _RefusedError(not_utf8(row, rows.position(row), error)) from error
        except csv.Error as error:
            raise _RefusedError(_not_csv(row, error)) from error


_NAMES_ADVICE = "Correct the header, or set csv.names and csv.header to what the file has."
_RAGGED_ADVICE = "Correct the row; a field that holds the delimiter or a line end must be quoted."
_SHORT_ADVICE = f"{_RAGGED_ADVICE} Or have its missing fields be null with csv.ragged=fill."
_LONG_ADVICE = f"{_RAGGED_ADVICE} Or have what is too much be left out with csv.ragged=cut."
_RETURN_ADVICE = "End rows with a line feed, and quote fields that hold a carriage return."
_DIALECT_ADVICE = (
    "Correct the row, or set csv.delimiter, csv.quote and csv.escape to what the file has."
)


class _RefusedError(Exception):
    def __init__(self, bad: BadRow) -> None:
        super().__init__(bad.reason)
        self.bad = bad


def _not_csv(row: int, error: csv.Error) -> BadRow:
    if str(error).startswith("new-line character"):
        # Python's advice is about how a program opens its file.
        reason = "This row holds a carriage return outside of quotes that does not end it."
        return BadRow(row=row, reason=reason, advice=_RETURN_ADVICE)
    reason = f"This row is not CSV of the configured dialect: {error}."
    return BadRow(row=row, reason=reason, advice=_DIALECT_ADVICE)


def _names_complaint(
    names: Sequence[str], fields: Sequence[str], dialect: CsvDialect
) -> str | None:
    if dialect.header and len(names) != len(fields):
        return f"This row has {_counted(len(fields))}, but csv.names has {len(names)}."
    repeated = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if repeated is not None:
        return f"Two fields have the name {repeated!r}."
    unknown = next((name for name, _ in dialect.types if name not in names), None)
    return None if unknown is None else f"csv.types speaks of a field {unknown!r} that is not here."


def _parsed(block: np.ndarray, width: int, dialect: CsvDialect) -> pa.Table:
    names = [str(number) for number in range(width)]
    return arrow_csv.read_csv(
        pa.BufferReader(pa.py_buffer(block)),
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=names
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            newlines_in_values=bool(dialect.quote),
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.utf8()), strings_can_be_null=False
        ),
    )


def _counted(fields: int) -> str:
    return "1 field" if fields == 1 else f"{fields} fields"
