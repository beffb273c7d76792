"""Listings of servers that may ignore where to start, or have no order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from headrace.stores.errors import (
    StoreUnavailableError,
)
from headrace.stores.store import StoredObject

Page = Sequence[StoredObject]
Pages = Callable[[str], Iterator[Page]]
"""The pages behind a key that the server is asked to start after; from the beginning for the empty one."""

_log = logging.getLogger(__name__)


class OrderedListing:
    """Lists a store and does not take the server's word for it.

    Keys up to the one to start after and outside the prefix are dropped here, whatever the server sends.
    A server whose keys do not rise may mean something else by "after", so from then on it is asked for
    everything. One object per store, for all its listings: what was learned is kept, and told once.
    A server that cannot start behind a key is always asked for everything: *starts_after* is false.
    """

    def __init__(self, store: str, *, starts_after: bool = True) -> None:
        self._store = store
        self._starts_after = starts_after
        self._has_order = True

    def objects(self, pages: Pages, prefix: str, start_after: str) -> Iterator[StoredObject]:
        """The objects of *pages* that begin with *prefix* and sort behind *start_after*.

        Raises ``StoreUnavailableError`` when disorder shows only behind the first page of a listing that
        was not asked from the beginning: the next listing will be.
        """
        # Python compares text by code points, which is the order of UTF-8 bytes.
        asked = start_after if self._has_order and self._starts_after else ""
        last = ""
        for number, page in enumerate(pages(asked)):
            if self._has_order and not _rises(last, page):
                self._lose_order(last, page)
                if asked and number == 0:
                    yield from self.objects(pages, prefix, start_after)
                    return
                if asked:
                    raise StoreUnavailableError(
                        f"{self._store}: The listing is not in order behind {last!r}, so objects may be "
                        "missing in it. The next listing is a full one."
                    )
            last = page[-1].key if page else last
            yield from (
                each for each in page if each.key > start_after and each.key.startswith(prefix)
            )

    def _lose_order(self, last: str, page: Page) -> None:
        self._has_order = False
        keys = (last, *(each.key for each in page))
        before, behind = next((a, b) for a, b in pairwise(keys) if b <= a)
        _log.warning(
            "%s lists %r behind %r, which is not the order of UTF-8 bytes: every listing of it is a full one.",
            self._store,
            behind,
            before,
        )


def _rises(last: str, page: Page) -> bool:
    return all(a < b for a, b in pairwise((last, *(each.key for each in page))))
