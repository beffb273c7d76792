"""Which row groups of a Parquet file belong to a range of its bytes. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from headrace.formats.parquet.footer import FooterPlaces, RowGroupPlaces


def row_group_begins(places: FooterPlaces) -> list[int]:
    """The byte at which each row group begins, for :func:`groups_between`; called once for each file.

    They rise, also where the footer says otherwise or a row group has no bytes, so that every cut of a file
    gives each row group to one side. None is less than its row group's number: a number, as an anchor,
    never passes for a byte behind the end of the range that it is in.
    """
    begins = list[int]()
    for group in places.row_groups:
        after = begins[-1] + 1 if begins else 0
        begins.append(max(after, _first_byte(group)))
    return begins


def groups_between(
    begins: Sequence[int], start: int, stop: int | None, *, size: int
) -> tuple[int, int]:
    """The first row group that begins at byte *start* or behind it, and the first one that does so at *stop*.

    *begins* are :func:`row_group_begins` of a file of *size* bytes. ``None``, like *size*, means behind the last
    one.
    """
    first = bisect_left(begins, start)
    if stop is None or stop >= size:
        return first, len(begins)
    return first, bisect_left(begins, stop)


def _first_byte(group: RowGroupPlaces) -> int:
    """The first byte of *group*'s first column; 0 when it has no columns."""
    if not group.columns:
        return 0
    column = group.columns[0]
    pages = [column.data_page_offset, column.dictionary_page_offset]
    # Some writers say 0 for a page that is not there.
    return min((page for page in pages if page and page > 0), default=0)
