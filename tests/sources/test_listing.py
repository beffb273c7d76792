"""Listings: in the order of keys, cut at pages or not, from the beginning or from a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.connector import SourceConnector
from headrace.connect.errors import TaskFailedError
from headrace.sources import Context, NativeItem, NativeSource
from headrace.sources.listing import Lister
from headrace.testing.task_runs import Stored
from sources.shelf import KINDS, PROPS, Shelf, ShelfTask, played, run

Kind = Callable[[], SourceConnector]
both = pytest.mark.parametrize("kind", KINDS)


class Number(NativeItem[int]):
    """An object without content."""

    def __init__(self, number: int) -> None:
        self._number = number

    def context(self) -> Context[int]:
        """Its number."""
        return Context(native_key=self._number)


class Numbers(NativeSource[int]):
    """Numbers, in pages; begins at a key, behind it, or cannot begin anywhere but at the first one."""

    name = "numbers"
    item_class = Number

    def __init__(self, numbers: list[int], page: int | None, begins: str) -> None:
        self._numbers = numbers
        self._page = page
        self._begins = begins
        self.asked = list[int | None]()

    def items(self, start_from: int | None) -> Iterator[Number]:
        """One page of them."""
        self.asked.append(start_from)
        at, behind = self._begins == "at", self._begins == "behind"
        shown = [
            number
            for number in self._numbers
            if start_from is None
            or (not at and not behind)
            or number > start_from
            or (at and number == start_from)
        ]
        return map(Number, shown[: self._page])


def listed(source: Numbers, start: int | None, lister: Lister[int] | None = None) -> list[int]:
    """The keys of a listing."""
    lister = lister or Lister(source)
    return [item.context().native_key for item in lister.listed(start)]


@given(
    numbers=st.sets(st.integers(0, 30)).map(sorted),
    page=st.one_of(st.none(), st.integers(2, 5)),
    begins=st.sampled_from(["at", "behind"]),
    start=st.one_of(st.none(), st.integers(0, 30)),
)
def test_a_listing_that_is_cut_at_pages_is_whole(
    numbers: list[int], page: int | None, begins: str, start: int | None
):
    """D5: every key from the start on, once, in order."""
    found = listed(Numbers(numbers, page, begins), start)

    least = -1 if start is None else start + (begins == "behind")
    assert [number for number in numbers if number >= least] == found


@given(
    numbers=st.sets(st.integers(0, 30)).map(sorted),
    start=st.one_of(st.none(), st.integers(0, 30)),
)
def test_a_source_that_cannot_start_in_the_middle_shows_nothing_before_it(
    numbers: list[int], start: int | None
):
    """What it lists before the start is dropped, as if it could."""
    found = listed(Numbers(numbers, None, "never"), start)

    assert [number for number in numbers if start is None or number >= start] == found


def test_a_source_that_cannot_start_in_the_middle_is_asked_once():
    """When that has been seen, its listings are not made twice."""
    source = Numbers([1, 2, 3], None, "never")
    lister = Lister(source)
    listed(source, None, lister)
    source.asked.clear()

    listed(source, None, lister)
    listed(source, 2, lister)

    assert [None, 2] == source.asked


def test_keys_that_do_not_rise_fail():
    """Whoever goes on from a key would lose those behind it."""
    with pytest.raises(TaskFailedError, match="numbers: 2 is listed behind 3"):
        listed(Numbers([1, 3, 2], None, "at"), None)


def test_a_key_that_comes_twice_on_a_page_fails():
    """The second object would be left out; on the next page the last one may come again."""
    with pytest.raises(TaskFailedError, match="numbers: 2 is listed behind 2"):
        listed(Numbers([1, 2, 2], None, "at"), None)
    assert [1, 2, 3] == listed(Numbers([1, 2, 3], 2, "at"), None)


@both
@pytest.mark.parametrize("page", [2, 3, 7])
@pytest.mark.parametrize("size", ["0", "1", "2", "5", "1000"])
@pytest.mark.parametrize("stop_after", [None, 9])
def test_nothing_is_lost_or_repeated_where_the_listing_is_cut(
    shelf: Shelf, kind: Kind, page: int, size: str, *, stop_after: int | None
):
    """D5: twenty objects, whatever look-back and page are, and those that come later."""
    names = [f"{number:02}" for number in range(20)]
    shelf.objects = {name: name.encode() + b"\n" for name in names}
    shelf.page = page
    stored: Stored = {}

    found = run(stored, stop_after, kind=kind, ring_buffer_size=size)
    found += run(stored, kind=kind, ring_buffer_size=size)
    shelf.objects["99"] = b"late\n"
    found += run(stored, kind=kind, ring_buffer_size=size)

    assert [*names, "late"] == found


def test_objects_before_the_look_back_are_not_read_again(shelf: Shelf):
    """D5: in one task, whose view of the store is as old as itself, of a source that always lists all."""
    shelf.objects = {name: name.encode() + b"\n" for name in "abcdef"}
    shelf.always_all = True
    task = ShelfTask()

    loop = played(task, {**PROPS, "ring.buffer.size": "1"}, idles=3)

    assert list("abcdef") == loop.values()


@both
def test_a_start_key_holds_for_a_source_that_always_lists_all(shelf: Shelf, kind: Kind):
    """Objects before it are not read."""
    shelf.objects = {name: name.encode() + b"\n" for name in "abcdef"}
    shelf.always_all = True

    assert ["d", "e", "f"] == run({}, kind=kind, native_start_key="d")
