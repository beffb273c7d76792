"""What a source lists: page after page, in the order of keys, each object once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from headrace.connect.errors import TaskFailedError
from headrace.sources.author_checks import key_of, listed_items
from headrace.sources.item import NativeItem
from headrace.sources.keys import K
from headrace.sources.source import NativeSource


class Lister(Generic[K]):
    """Lists *source*, again and again; used on one thread.

    A source is asked again from its last key on until nothing follows, because it may show a page at a time.
    One that cannot start in the middle is not, once that has been seen.
    """

    def __init__(self, source: NativeSource[K]) -> None:
        self._source = source
        self._first: K | None = None
        self._lists_all = False

    def listed(self, start: K | None) -> Iterator[NativeItem[K]]:
        """The objects from *start* on (``None``: all). Raises what the source does.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when keys do not rise: whoever goes on
        from one would lose what is listed behind it.
        """
        last: K | None = None
        while True:
            begin, before = (start if last is None else last), last
            for item, key in self._page(begin):
                below = start is not None and key < start
                if not below and (last is None or last < key):
                    last = key
                    yield item
            if last is None or last == before or self._lists_all:
                return

    def _page(self, begin: K | None) -> Iterator[tuple[NativeItem[K], K]]:
        previous: K | None = None
        for item in listed_items(self._source, begin):
            key = key_of(item)
            if previous is None:
                self._learn(begin, key)
            elif not previous < key:
                raise TaskFailedError(
                    f"{self._source.name}: {key} is listed behind {previous}. A source must list its objects "
                    "in the order of their keys, each key once, because a listing begins at a key."
                )
            previous = key
            yield item, key

    def _learn(self, begin: K | None, first: K) -> None:
        """A listing that was to begin at *begin* begins at *first*."""
        if begin is None:
            self._first = first
        elif first == self._first and first < begin:
            self._lists_all = True
