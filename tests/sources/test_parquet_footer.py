"""Where a Parquet footer says that columns are: as Arrow understands it, and as far as that can be."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import TaskFailedError
from headrace.formats.parquet.file import ParquetSource
from headrace.formats.parquet.footer import ColumnPlace, FooterPlaces, footer_places
from project.sampling import drawn

TABLE = pa.table(
    {
        "n": list(range(4000)),
        "text": ["x" * (n % 13) + str(n) for n in range(4000)],
        "maybe": [None if n % 3 else "m" for n in range(4000)],
        "list": [[{"a": n, "b": True}] * (n % 3) for n in range(4000)],
        "map": pa.array([[("k", n)] for n in range(4000)], pa.map_(pa.utf8(), pa.int64())),
    }
)
WRITTEN: dict[str, dict[str, Any]] = {
    "dictionaries": {"write_page_checksum": True},
    "plain": {"compression": "none", "use_dictionary": False},
    "version 2": {"compression": "gzip", "data_page_version": "2.0"},
    "indexes": {"write_page_index": True, "sorting_columns": [pq.SortingColumn(0)]},
    "no statistics": {"write_statistics": False, "store_schema": False},
}


def written(table: pa.Table = TABLE, **options: Any) -> bytes:  # noqa: ANN401 (the options of another library)
    """A file of two row groups."""
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=2000, **options)
    return out.getvalue()


def footer_of(content: bytes) -> tuple[bytes, int]:
    """The footer, and the byte at which it begins."""
    length = int.from_bytes(content[-8:-4], "little")
    return content[-8 - length : -8], len(content) - 8 - length


def read(content: bytes) -> int:
    """How many rows are read of it."""
    source = ParquetSource(io.BytesIO(content), "it", columns=())  # pyright: ignore[reportArgumentType]
    return sum(
        len(each) for group in range(len(source.rows)) for each in source.batches(group, 1000)
    )


@pytest.mark.parametrize("name", WRITTEN)
def test_places_are_those_that_arrow_tells(name: str):
    """Of each column of each row group."""
    content = written(**WRITTEN[name])
    metadata = pq.read_metadata(io.BytesIO(content))

    footer, end = footer_of(content)
    places = footer_places(footer)

    assert 2 == metadata.num_row_groups == len(places.row_groups)
    for group in range(2):
        told, found = metadata.row_group(group), places.row_groups[group]
        assert (told.num_rows, told.num_columns) == (found.rows, len(found.columns))
        for index in range(told.num_columns):
            each = told.column(index)
            expected = ColumnPlace(
                each.data_page_offset, each.dictionary_page_offset, each.total_compressed_size
            )
            assert expected == found.columns[index]
    assert places.misplaced(end) is None
    assert len(TABLE) == read(content)


@pytest.mark.parametrize("table", [TABLE.slice(0, 0), TABLE.select([])])
def test_what_has_no_columns_or_no_rows_is_in_its_place(table: pa.Table):
    """Their places mean nothing."""
    assert 0 == read(written(table))


def test_a_flipped_bit_in_the_place_of_a_page_is_found_before_anything_is_read():
    """Arrow would take the bytes there for the length of a page: up to 2 GB, for seconds."""
    content = written(**WRITTEN["dictionaries"])
    place = pq.read_metadata(io.BytesIO(content)).row_group(1).column(1).dictionary_page_offset
    assert place is not None
    footer, begin = footer_of(content)
    at = begin + footer.rindex(varint(place))
    flipped = content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]

    with pytest.raises(TaskFailedError, match=r"it, its footer: .* column \d of row group 1 is at"):
        read(flipped)


def varint(number: int) -> bytes:
    """A number as Thrift writes it."""
    rest, found = number << 1, b""
    while rest > 127:
        found, rest = found + bytes([rest & 127 | 128]), rest >> 7
    return found + bytes([rest])


def moved(places: FooterPlaces, **changed: int) -> FooterPlaces:
    """*places* with the last column of all changed."""
    *groups, last = places.row_groups
    *columns, column = last.columns
    return FooterPlaces([*groups, replace(last, columns=[*columns, replace(column, **changed)])])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"data_page_offset": 3}, "the file's first bytes end at byte 4"),
        ({"data_page_offset": 4}, "is at bytes"),
        ({"data_page_offset": -5}, "end at byte 4"),
        ({"data_page_offset": 2**62}, "but the footer begins at byte"),
        ({"total_compressed_size": 2**62}, "but the footer begins at byte"),
        ({"total_compressed_size": -1}, "but the footer begins at byte"),
    ],
)
def test_a_column_has_its_place_before_the_footer_and_for_itself(
    changed: dict[str, int], told: str
):
    """The first one that has not is told."""
    footer, end = footer_of(written(**WRITTEN["plain"]))

    assert told in str(moved(footer_places(footer), **changed).misplaced(end))


@settings(max_examples=drawn(300), deadline=None)
@given(
    cut=some.integers(0, 3000),
    garbage=some.binary(max_size=40),
)
def test_no_footer_ends_the_process_or_goes_on_for_ever(cut: int, garbage: bytes):
    """What is none is refused."""
    footer, _ = footer_of(written(TABLE.slice(0, 4)))

    for content in (footer[:cut], footer[:cut] + garbage + footer[cut + len(garbage) :], garbage):
        with suppress(ValueError):
            footer_places(content).misplaced(len(content))


def test_a_large_footer_is_read_as_well():
    """Not all of it is in the bytes that are asked for at first."""
    table = pa.table({f"column {index}": [1, 2] for index in range(400)})
    content = written(table, write_statistics=True)

    assert len(footer_of(content)[0]) > 64 * 1024
    assert 2 == read(content)
