"""Listings of servers that do not do what they are asked."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from headrace.stores.errors import StoreUnavailableError
from headrace.stores.listing import OrderedListing, Page, Pages
from headrace.stores.store import StoredObject


class Server:
    """Lists *keys* as they stand here, two on a page, behind the key asked for if it can."""

    def __init__(self, *keys: str, can_start: bool = True) -> None:
        self.keys = keys
        self.can_start = can_start
        self.asked: list[str] = []

    def pages(self, after: str) -> Iterator[Page]:
        """What :class:`OrderedListing` asks for."""
        self.asked.append(after)
        begin = self.keys.index(after) + 1 if after and self.can_start else 0
        for place in range(begin, len(self.keys), 2):
            yield [
                StoredObject(key=key, size=1, version="v", modified_ms=0)
                for key in self.keys[place : place + 2]
            ]


def _keys(listing: OrderedListing, pages: Pages, prefix: str = "", after: str = "") -> list[str]:
    return [each.key for each in listing.objects(pages, prefix, after)]


@pytest.mark.parametrize("can_start", [True, False])
def test_keys_up_to_the_start_are_dropped_whoever_drops_them(*, can_start: bool):
    """Emulators ignore where to start without a word."""
    server = Server("a", "b", "c", "d", "e", can_start=can_start)

    assert ["d", "e"] == _keys(OrderedListing("store"), server.pages, after="c")
    assert ["c"] == server.asked


def test_a_server_without_order_is_asked_for_everything_and_told_once(
    caplog: pytest.LogCaptureFixture,
):
    """What it means by "after" is not what we mean."""
    server = Server("d", "c", "x", "b", "e", "a")
    listing = OrderedListing("s3://bucket")
    with caplog.at_level(logging.WARNING):
        # Behind "c" this server has no "d", which is why it must not be asked like that.
        assert ["d", "x", "e"] == _keys(listing, server.pages, after="c")
        assert ["d", "x", "e"] == _keys(listing, server.pages, after="c")
        assert ["x"] == _keys(listing, server.pages, prefix="x")

    assert ["c", "", "", ""] == server.asked
    (told,) = caplog.messages
    assert "s3://bucket lists 'b' behind 'x'" in told


def test_disorder_that_shows_late_fails_this_listing_and_not_the_next():
    """What was given already cannot be taken back, nor given twice."""
    server = Server("a", "b", "c", "z", "y")
    listing = OrderedListing("store")

    with pytest.raises(StoreUnavailableError, match="not in order behind 'c'"):
        _keys(listing, server.pages, after="a")
    assert ["b", "c", "z", "y"] == _keys(listing, server.pages, after="a")


def test_a_whole_listing_without_order_gives_every_key_once():
    """A listing from the beginning needs no order to be whole."""
    server = Server("a", "b", "c", "z", "y")

    assert [*"abczy"] == _keys(OrderedListing("store"), server.pages)


def test_order_is_that_of_utf8_bytes():
    """Which is not that of UTF-16, in which some servers sort."""
    keys = sorted(("\uffff", "\U00010000", "a", "é"), key=str.encode)
    server = Server(*keys)
    listing = OrderedListing("store")

    assert keys[1:] == _keys(listing, server.pages, after="a")
    assert ["a"] == server.asked
