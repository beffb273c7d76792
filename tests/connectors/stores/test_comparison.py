"""What is read from the first byte to the last, compared with the store's checksum before it ends."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

import pytest

from headrace.stores.checksum import Checksum
from headrace.stores.errors import ChecksumError, StoreUnavailableError
from headrace.stores.ranged_reader import RangedReader
from headrace.stores.retries import Retries

DATA = bytes(range(256)) * 10
BAD_FIRST = b"?" + DATA[1:]
BAD_LAST = DATA[:-1] + b"?"


class Answer:
    """The body of one answer."""

    def __init__(self, data: bytes, checksum: Checksum | None, *, total: int) -> None:
        self.total = total
        self.checksum = checksum
        self._data = data

    def read(self, count: int) -> bytes:
        """See ``Body``."""
        data, self._data = self._data[:count], self._data[count:]
        return data

    def close(self) -> None:
        """See ``Body``."""


class Server:
    """Answers with *answers*, one after the other, and with the last of them from then on."""

    def __init__(self, *answers: bytes | None, of: bytes = DATA) -> None:
        self.asked: list[tuple[int, int | None]] = []
        self._answers = answers
        self._expected = hashlib.md5(of).digest()

    def fetch(self, start: int, stop: int | None) -> Answer:
        """See ``Fetch``; ``None`` among the answers is a server that is away."""
        data = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append((start, stop))
        if data is None:
            raise StoreUnavailableError("away")
        whole = start == 0 and stop is None
        checksum = Checksum("md5", self._expected) if whole else None
        return Answer(data[start:stop], checksum, total=len(data))

    def reader(self, position: int = 0) -> RangedReader:
        """Reads from *position* on."""
        return RangedReader(
            store="s3://b",
            key="k",
            fetch=self.fetch,
            position=position,
            size=len(DATA),
            retries=Retries(attempts=2, sleep=bool),
        )


def test_what_is_right_is_read_once():
    """And nothing is asked again at its end."""
    server = Server(DATA)
    reader = server.reader()

    assert DATA == reader.read(len(DATA))
    assert b"" == reader.read(1)
    assert 1 == len(server.asked)


@pytest.mark.parametrize("bad", [BAD_FIRST, BAD_LAST])
def test_an_object_that_was_not_given_on_yet_is_put_right(
    bad: bytes, caplog: pytest.LogCaptureFixture
):
    """By a second reading, which is told."""
    server = Server(bad, DATA)

    with caplog.at_level(logging.WARNING):
        assert DATA == server.reader().read(len(DATA))

    assert [(0, None)] * 2 == server.asked
    assert "s3://b: 'k'" in caplog.text


def test_last_bytes_are_put_right_behind_others_that_were_right():
    """Only what is held back can be."""
    reader = Server(BAD_LAST, DATA).reader()

    assert DATA[:1000] == reader.read(1000)
    assert DATA[1000:] == reader.read(len(DATA))


def test_bytes_that_were_given_on_cannot_be_put_right():
    """The end does not come, and the advice says how to read them again."""
    reader = Server(BAD_FIRST, DATA).reader()
    reader.read(1000)

    with pytest.raises(ChecksumError, match=r"damaged on their way.*another key") as told:
        reader.read(len(DATA))

    right, wrong = (Checksum("md5", hashlib.md5(each).digest()) for each in (DATA, BAD_FIRST))
    assert ("s3://b", "k") == (told.value.store, told.value.key)
    assert f"md5 checksum {wrong.expected}, but the store gives {right.expected}" in str(told.value)


def test_what_is_stored_damaged_is_told_apart():
    """A second reading finds the same."""
    reader = Server(BAD_LAST).reader()
    reader.read(1000)

    with pytest.raises(ChecksumError, match="what is stored is not"):
        reader.read(len(DATA))


def test_a_second_reading_that_does_not_go_through_is_no_second_chance():
    """Who tried again from here would read the rest and never compare."""
    server = Server(BAD_LAST, None)

    with pytest.raises(ChecksumError, match="away"):
        server.reader().read(len(DATA))
    assert 3 == len(server.asked)


@pytest.mark.parametrize(
    "read",
    [
        lambda server: server.reader(10).read(len(DATA)),
        lambda server: (
            reader := server.reader(),
            reader.read(9),
            reader.seek(0),
            reader.read(),
        )[-1],
    ],
    ids=["resumed", "with a jump"],
)
def test_only_what_is_read_in_one_go_is_compared(read: Callable[[Server], bytes]):
    """The store's checksum is of the whole."""
    assert BAD_LAST.endswith(read(Server(BAD_LAST)))


@pytest.mark.parametrize(
    "kind", ["crc32", "crc32c", "crc64nvme", "md5", "sha1", "sha256", "sha512"]
)
def test_a_checksum_goes_on_behind_a_copy_of_it(kind: str):
    """Each of those that stores give."""
    checksum = Checksum(kind, b"")
    checksum.update(DATA[:7])
    copied = checksum.copy()
    copied.update(DATA[7:])
    whole = checksum.again()
    whole.update(memoryview(DATA))

    assert whole.found == copied.found != checksum.found
