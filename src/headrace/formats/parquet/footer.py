"""Where the footer of a Parquet file says that its columns are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.formats.parquet.compact_thrift import INT64, STRUCT, CompactReader

# Numbers of fields in parquet.thrift of parquet-format.
_ROW_GROUPS = 4
_COLUMNS, _ROWS = 1, 3
_META_DATA = 3
_TOTAL_COMPRESSED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE = 7, 9, 11
_PLACES = (_TOTAL_COMPRESSED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE)
_MAGIC_BYTES = 4


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """Where one column of a row group is; ``None`` for what the footer does not tell. Named as pyarrow names them."""

    data_page_offset: int | None
    dictionary_page_offset: int | None
    total_compressed_size: int | None

    def span(self) -> tuple[int, int] | None:
        """Its first byte and the one behind it, as Arrow understands them; ``None`` where they are not told."""
        start, size, dictionary = (
            self.data_page_offset,
            self.total_compressed_size,
            self.dictionary_page_offset,
        )
        if start is None or size is None:
            return None
        # Some writers say 0 for a dictionary that is not there.
        start = min(start, dictionary) if dictionary and dictionary > 0 else start
        return start, start + size


@dataclass(frozen=True, slots=True)
class RowGroupPlaces:
    """The columns of a row group of so many *rows*."""

    rows: int
    columns: Sequence[ColumnPlace]


@dataclass(frozen=True, slots=True)
class FooterPlaces:
    """The row groups that a footer tells of. Unlike pyarrow's objects for them, these survive a damaged footer.

    pyarrow's ``RowGroupMetaData.column`` ends the process where a column's statistics make no sense.
    """

    row_groups: Sequence[RowGroupPlaces]

    def misplaced(self, end: int) -> str | None:
        """What is wrong with the places in a file whose footer begins at byte *end*; ``None`` if nothing is.

        A column begins behind the file's first bytes, ends before its footer, and shares no byte with another
        one. At a wrong place Arrow takes any bytes for a page's length, and takes up to 2 GB for it before it sees
        that they are none.
        """
        behind, last = _MAGIC_BYTES, "the file's first bytes"
        for (start, stop), name in sorted(self._spans()):
            told = f"it says that {name} is at bytes {start} to {stop}, but"
            if start < behind:
                return f"{told} {last} end at byte {behind}"
            if not start <= stop <= end:
                return f"{told} the footer begins at byte {end}"
            behind, last = stop, f"those of {name}"
        return None

    def _spans(self) -> Iterator[tuple[tuple[int, int], str]]:
        """Of what is ever read."""
        for number, group in enumerate(self.row_groups):
            for index, column in enumerate(group.columns if group.rows else ()):
                span = column.span()
                if span is not None:
                    yield span, f"column {index} of row group {number}"


def footer_places(footer: bytes) -> FooterPlaces:
    """What *footer* says, which is all between the last page and the file's last eight bytes.

    Raises ``ValueError`` for what is no sound footer.
    """
    groups = list[RowGroupPlaces]()
    reader = CompactReader(footer)
    for number, kind in reader.fields():
        if number == _ROW_GROUPS:
            groups += [_row_group(reader) for _ in range(_structs(reader))]
        else:
            reader.skip(kind)
    return FooterPlaces(groups)


def _row_group(reader: CompactReader) -> RowGroupPlaces:
    columns, rows = list[ColumnPlace](), 0
    for number, kind in reader.fields():
        if number == _COLUMNS:
            columns += [_column(reader) for _ in range(_structs(reader))]
        elif number == _ROWS and kind == INT64:
            rows = reader.integer()
        else:
            reader.skip(kind)
    return RowGroupPlaces(rows, columns)


def _column(reader: CompactReader) -> ColumnPlace:
    told = dict[int, int]()
    for number, kind in reader.fields():
        if number != _META_DATA or kind != STRUCT:
            reader.skip(kind)
            continue
        for inner, inner_kind in reader.fields():
            if inner in _PLACES and inner_kind == INT64:
                told[inner] = reader.integer()
            else:
                reader.skip(inner_kind)
    return ColumnPlace(
        data_page_offset=told.get(_DATA_PAGE),
        dictionary_page_offset=told.get(_DICTIONARY_PAGE),
        total_compressed_size=told.get(_TOTAL_COMPRESSED_SIZE),
    )


def _structs(reader: CompactReader) -> int:
    count, kind = reader.items()
    if count and kind != STRUCT:
        raise ValueError(f"it has elements of type {kind}, where structs should be")
    return count
