"""What stores that are asked over plain HTTP do in bad moments; ``TestBadMoments`` of S3 is the model."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from connectors.stores.s3_proxy import Answer, Fault, Proxy
from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import (
    ChecksumError,
    ObjectChangedError,
    StoreUnavailableError,
)
from headrace.stores.ranged_reader import FIRST_WINDOW
from headrace.stores.store import Store
from headrace.testing.store_suite import DATA, Put

BIG = bytes(range(251)) * 20_000


class RestMoments:
    """Subclass it with fixtures ``store`` (three attempts, no waiting, pages of three), ``put``, ``proxy``.

    *listing*, *reading* and *copying* are the method of such a request and what its target contains,
    *page_token* is the parameter that says where a page begins, *forbidden* what its advice names.
    """

    listing: ClassVar[tuple[str, str]]
    reading: ClassVar[tuple[str, str]]
    copying: ClassVar[tuple[str, str]]
    page_token: ClassVar[str]
    forbidden: ClassVar[str]

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(status=500),
            Fault(status=503),
            Fault(status=429),
            Fault(status=408),
            Fault(cut_at=0),
            Fault(cut_at=40),
        ],
        ids=lambda fault: f"{fault.status or fault.cut_at}",
    )
    def test_every_operation_goes_on(self, fault: Fault, store: Store, put: Put, proxy: Proxy):
        """Each is tried again, and a cut answer is never a shorter one."""
        for key in "abcde":
            put(key, DATA)
        version = store.head("a").version
        for method, target in (self.listing, self.reading, self.copying):
            proxy.fail(replace(fault, method=method, target=target, times=2))

        assert [*"abcde"] == [each.key for each in store.list()]
        assert DATA == store.open("a", version).read()
        assert len(DATA) == store.copy("a", version, "copy").size
        store.delete("a", version)
        assert "b" == next(store.list()).key

    def test_what_does_not_pass_is_an_error_and_no_end(self, store: Store, put: Put, proxy: Proxy):
        """After the last attempt it is an OSError that tells what was asked."""
        put("a", DATA)
        version = store.head("a").version
        opened = store.open("a", version)
        proxy.forget()
        for method, target in (self.listing, self.reading):
            proxy.fail(Fault(method, target, times=99, status=503))

        assert DATA == opened.read()
        with pytest.raises(StoreUnavailableError, match=r"list|List.*: 503"):
            list(store.list())
        with pytest.raises(StoreUnavailableError, match=r"'a': .*: 503"):
            store.open("a", version)
        assert 6 == len(proxy.seen)

    def test_a_stream_goes_on_at_the_byte_where_it_broke(
        self, store: Store, put: Put, proxy: Proxy
    ):
        """Each break costs one request."""
        put("a", BIG)
        version = store.head("a").version
        proxy.forget()
        for cut_at in (1_000_000, 2_000_000, 500_000):
            proxy.fail(Fault(*self.reading, cut_at=cut_at))

        with store.open("a", version) as opened:
            read = b"".join(iter(lambda: opened.read(300_000) or b"", b""))

        assert BIG == read
        assert 4 == len(proxy.seen)

    @pytest.mark.parametrize("position", [0, 10])
    def test_a_short_answer_that_looks_whole_is_noticed(
        self, position: int, store: Store, put: Put, proxy: Proxy
    ):
        """Its own length is right; the object is longer."""
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault(*self.reading, times=2, change=_shortened))
        assert DATA[position:] == store.open("a", version, position, size=len(DATA)).read()

        proxy.fail(Fault(*self.reading, times=99, change=_shortened))
        with pytest.raises(StoreUnavailableError, match=r"has 1280|gone on to byte 1280"):
            store.open("a", version, position, size=len(DATA)).read()

    def test_a_server_that_ignores_ranges_is_noticed(self, store: Store, put: Put, proxy: Proxy):
        """Its bytes would be taken for others."""
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault(*self.reading, times=99, drop="range"))

        with pytest.raises(StoreUnavailableError, match="asked for from byte 10 on"):
            store.open("a", version, 10)

    @pytest.mark.parametrize("cut_at", [None, 100])
    def test_flipped_bits_are_noticed_before_the_end(
        self, cut_at: int | None, store: Store, put: Put, proxy: Proxy
    ):
        """Also where the body came in two answers."""
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault(*self.reading, cut_at=cut_at, change=_flipped))

        with store.open("a", version) as opened:
            assert 50 == len(opened.read(50))
            with pytest.raises(ChecksumError, match=r"'a'.*md5 checksum.*on their way"):
                opened.read(len(DATA))

    def test_flipped_bits_in_what_was_not_given_on_are_put_right(
        self, store: Store, put: Put, proxy: Proxy
    ):
        """By reading the object once more."""
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault(*self.reading, change=_flipped))

        assert DATA == store.open("a", version).read()

    def test_an_object_that_is_replaced_while_it_is_read(
        self, store: Store, put: Put, proxy: Proxy
    ):
        """The rest of another version is not the rest of this one."""
        put("a", BIG)
        version = store.head("a").version
        proxy.fail(Fault(*self.reading, cut_at=1_000_000))
        with store.open("a", version) as opened:
            opened.read(1000)
            put("a", BIG[::-1])
            with pytest.raises(ObjectChangedError, match="'a'"):
                opened.read(len(BIG))

    def test_a_jump_asks_for_a_window_and_not_for_the_rest(
        self, store: Store, put: Put, proxy: Proxy
    ):
        """Each window is twice the one before."""
        put("a", BIG)
        with store.open("a", store.head("a").version) as opened:
            opened.read(10)
            answers: list[int] = []
            proxy.fail(
                Fault(*self.reading, times=9, change=lambda a: (answers.append(len(a.body)), a)[1])
            )
            opened.seek(1_000_000)
            assert BIG[1_000_000:4_500_000] == opened.read(3_500_000)

        assert [FIRST_WINDOW, 2 * FIRST_WINDOW, len(BIG) - 1_000_000 - 3 * FIRST_WINDOW] == answers

    def test_pages_follow_each_other_with_the_prefix(self, store: Store, put: Put, proxy: Proxy):
        """Each is asked for when it is needed, and with the prefix."""
        for number in range(8):
            put(f"in/{number}", b"")
            put(f"out/{number}", b"")
        proxy.forget()
        listed = store.list("in/")

        assert ["in/0", "in/1", "in/2"] == [next(listed).key for _ in range(3)]
        assert 1 == len(proxy.seen)
        assert [f"in/{n}" for n in range(3, 8)] == [each.key for each in listed]
        assert 3 == len(proxy.seen)
        assert all("prefix=in%2F" in target for _, target in proxy.seen)

    def test_a_server_that_ignores_the_prefix(self, store: Store, put: Put, proxy: Proxy):
        """What was not asked for is dropped here."""
        for key in ("a", "b/1", "b/2", "b/3", "c", "d"):
            put(key, b"")
        proxy.fail(Fault(*self.listing, times=99, drop="prefix"))

        assert ["b/2", "b/3"] == [each.key for each in store.list("b", "b/1")]

    def test_a_listing_that_repeats_a_page_is_not_the_end(
        self, store: Store, put: Put, proxy: Proxy
    ):
        """Nor does it keep us for ever."""
        for key in "abcd":
            put(key, b"")
        proxy.fail(Fault(*self.listing, times=99, drop=self.page_token))
        with pytest.raises(StoreUnavailableError):
            list(store.list())

    def test_what_a_person_has_to_mend_is_not_tried_again(self, store: Store, proxy: Proxy):
        """It comes with advice."""
        proxy.fail(Fault(*self.listing, times=9, status=403, code="AuthorizationFailure"))
        proxy.seen.clear()
        with pytest.raises(TaskFailedError, match=f"403.*{self.forbidden}"):
            list(store.list())
        assert 1 == len(proxy.seen)


def _shortened(answer: Answer) -> Answer:
    return replace(answer, body=answer.body[:-7])


def _flipped(answer: Answer) -> Answer:
    return replace(answer, body=bytes([answer.body[0] ^ 1]) + answer.body[1:])
