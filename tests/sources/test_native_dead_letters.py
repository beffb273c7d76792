"""Bad records of a native source: passed over in their places, also across a cut connection and a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.connect.connector import SourceConnector
from headrace.connect.partition import SourcePartition
from headrace.task.connector_spec import ErrorPolicy
from sources.shelf import (
    KINDS,
    PROPS,
    SHELF,
    LouderConnector,
    Shelf,
    ShelfConnector,
)
from task.local_loop import Rounds

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead")
OBJECTS = {"a": b"1\n\xff\n2\n", "b": b"\xfe\n", "c": b"3\n\xfd\n\xfc"}
GOOD, BAD = [b"1", b"2", b"3"], [b"\xff", b"\xfe", b"\xfd", b"\xfc"]


@pytest.fixture(autouse=True)
def shelf() -> Shelf:
    """A shelf of lines that are not all UTF-8."""
    SHELF.__init__()
    SHELF.objects = dict(OBJECTS)
    return SHELF


def rounds(kind: Callable[[], SourceConnector]) -> Rounds:
    """Rounds of a connector for the shelf."""
    return Rounds(kind, {**PROPS, "name": "c"}, DEAD)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("killed_at", range(1, 9))
def test_records_and_letters_are_all_there_is(
    kind: Callable[[], SourceConnector], killed_at: int
) -> None:
    """Wherever it is killed, and every object is done in the end."""
    played = rounds(kind)

    played.play(killed_at=killed_at)
    played.play()

    assert (GOOD, BAD) == (played.values("books"), played.values("dead"))
    assert all(offset["done"] for offset in played.stored.values() if "recordCount" in offset)
    assert {3, 1} == {
        offset["recordCount"] for offset in played.stored.values() if "recordCount" in offset
    }


def test_a_bad_record_before_a_cut_connection_is_told_once(shelf: Shelf) -> None:
    """The object is opened again behind it."""
    shelf.objects = {"a": b"\xff\n" + b"2\n" * 50}
    shelf.broken = {"a": 2}
    played = rounds(ShelfConnector)

    played.play()

    assert ([b"\xff"], 50) == (played.values("dead"), len(played.values("books")))
    assert 2 == shelf.opened.count("a")


def test_what_the_last_evolution_left_in_the_offset_stays() -> None:
    """A letter has no evolution of its own."""
    played = rounds(LouderConnector)

    played.play()

    assert BAD == played.values("dead")
    assert len(GOOD) == len(played.values("books"))
    assert "3!" == played.stored[SourcePartition(key="c")]["said"]
