"""Objects of a native source of which nothing more can be read: put in quarantine, told, and released."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from headrace.connect import Explained
from headrace.connect.connector import PlanRequest, SourceConnector
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Polled
from headrace.formats.by_name import JSONL
from headrace.formats.streams import Compression
from headrace.sources import (
    Extractor,
    OffsetEntry,
    OffsetKey,
    PlannedNativeConnector,
    SourceConfig,
    StreamExtractor,
)
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.testing.task_runs import LocalConnectorContext, LocalRun, StoredOffsets
from sources.avro_files import avro_file
from sources.shelf import (
    KINDS,
    PROPS,
    Book,
    Louder,
    PlannedShelfConnector,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
    partition_of,
    played,
)
from sources.test_acknowledging import TOLD, LendingConnector, PlannedLendingConnector
from task.local_loop import Rounds
from task.loop import Loop

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
WHOLE = avro_file("int", list(range(9)), per_block=1)
LIES = WHOLE[:-3] + bytes([WHOLE[-3] ^ 0xFF]) + WHOLE[-2:]
"""The last of nine records is in a block without its end."""


def rounds(kind: type[SourceConnector], **more: str) -> Rounds:
    """Rounds of a connector for the shelf."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    props = {**PROPS, "extractor.class": "avro", "name": "c", **given}
    return Rounds(kind, props, DEAD)


def entry(played: Rounds, name: str = "a") -> SourceOffset:
    """Of a book."""
    return played.stored[partition_of(name)]


def numbers(played: Rounds) -> list[int]:
    """What was sent."""
    return [int(value or b"") for value in played.values("books")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("killed_at", [*range(1, 9), None])
def test_the_rest_of_a_damaged_object_is_one_letter_and_the_next_object_is_read(
    shelf: Shelf, kind: type[SourceConnector], killed_at: int | None
) -> None:
    """Wherever it is killed: what comes before the damage is sent, and nothing twice."""
    shelf.objects = {"a": LIES, "b": WHOLE, "c": b"no Avro", "d": WHOLE}
    made = rounds(kind)

    made.play(killed_at=killed_at)
    made.play()

    assert [*range(8), *range(9), *range(9)] == numbers(made)
    assert ([None] * 2, 2, 2) == (made.values("dead"), made.quarantined, made.tolerated)
    assert {"recordCount": 8}.items() <= entry(made).items()
    assert "block" in str(entry(made)["quarantined"])
    assert {"recordCount": 0}.items() <= entry(made, "c").items()
    assert [False, True, False, True] == ["done" in entry(made, name) for name in "abcd"]
    assert not any("quarantined" in entry(made, name) for name in "bd")


def test_the_letter_tells_the_object_and_its_version(shelf: Shelf) -> None:
    """And that it stands for all the rest."""
    shelf.objects, shelf.versions = {"a": LIES}, {"a": "v1"}
    made = rounds(ShelfConnector)

    made.play()

    (headers,) = [dict(each) for each in made.headers if each]
    told = headers["__connect.errors.source.reference"]
    assert told is not None
    for part in (b'"object":"a"', b'"version":"v1"', b'"rest":true'):
        assert part in told.replace(b": ", b":")


@pytest.mark.parametrize("kind", KINDS)
def test_without_tolerance_it_fails_with_its_place(
    shelf: Shelf, kind: type[SourceConnector]
) -> None:
    """And the entry stays before it."""
    shelf.objects = {"a": LIES}
    stored = dict[SourcePartition, SourceOffset]()
    props = {**PROPS, "extractor.class": "avro"}

    for _ in range(2):
        with pytest.raises(RecordError, match=r"a, .*block"):
            LocalRun(kind(), props, stored).until_idle()

    assert not any("quarantined" in offset or "done" in offset for offset in stored.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("released", ["set", "removed"])
def test_setting_its_entry_or_removing_the_note_releases_it(
    shelf: Shelf, kind: type[SourceConnector], released: str
) -> None:
    """It is read again from its beginning, or where it stopped."""
    shelf.objects = {"a": LIES}
    made = rounds(kind)
    made.play()
    shelf.objects = {"a": WHOLE}
    made.play()
    assert list(range(8)) == numbers(made)

    left = {name: value for name, value in entry(made).items() if name != "quarantined"}
    made.stored[partition_of("a")] = {"recordCount": 0} if released == "set" else left
    made.play()

    again = list(range(9)) if released == "set" else [8]
    assert [*range(8), *again] == numbers(made)
    assert entry(made)["done"]


def test_an_entry_that_was_set_is_found_below_the_mark(shelf: Shelf) -> None:
    """A polled source lists from its mark on, which objects in quarantine move as others do, and finds it besides."""
    shelf.objects = {"a": LIES, **dict.fromkeys("bcd", WHOLE), "e": LIES}
    made = rounds(ShelfConnector, ring_buffer_size="2")
    made.play()
    shelf.objects["a"] = WHOLE
    shelf.listed_from.clear()
    made.play()
    assert [None, "d"] == shelf.listed_from[:2]

    made.stored[partition_of("a")] = {"recordCount": 8}
    made.play()

    assert 8 + 3 * 9 + 8 + 1 == len(numbers(made))
    assert entry(made)["done"]


class AfterKeySource(ShelfSource):
    """Shows its books from behind the key that a listing begins at, as many stores do."""

    def items(self, start_from: str | None) -> Iterator[Book]:
        """Without the one at that key."""
        found = super().items(start_from)
        return (each for each in found if each.context().native_key != start_from)


class OddlyNamedSource(AfterKeySource):
    """Names its books by more than their keys."""

    def offset_key(self, native_key: str) -> OffsetKey:
        """Not by the key alone."""
        return OffsetKey({"shelf": 1, "book": native_key})

    def entry_from_data(self, data: Mapping[str, object]) -> OffsetEntry:
        """By the book."""
        return OffsetEntry(self.offset_key(str(data["book"])), data)


class AfterKeyTask(ShelfTask):
    """Reads it."""

    def source(self, config: SourceConfig) -> AfterKeySource:
        """The one shelf there is."""
        return AfterKeySource()


class AfterKeyConnector(ShelfConnector):
    """It as a connector."""

    task_class = AfterKeyTask
    source_class = AfterKeySource


class OddlyNamedTask(ShelfTask):
    """Reads it."""

    def source(self, config: SourceConfig) -> OddlyNamedSource:
        """The one shelf there is."""
        return OddlyNamedSource()


class OddlyNamedConnector(ShelfConnector):
    """It as a connector."""

    task_class = OddlyNamedTask
    source_class = OddlyNamedSource


POLLED = [ShelfConnector, AfterKeyConnector, OddlyNamedConnector]


@pytest.mark.parametrize("kind", POLLED)
@pytest.mark.parametrize("is_gone_between", [False, True])
@pytest.mark.parametrize("killed_at", [*range(1, 8), None])
def test_another_version_is_found_below_the_mark(
    shelf: Shelf, kind: type[SourceConnector], killed_at: int | None, *, is_gone_between: bool
) -> None:
    """After restarts too, wherever the reading of it is killed."""
    books = dict.fromkeys("abcdef", WHOLE)
    shelf.objects, shelf.versions = {**books, "b": b"no Avro"}, dict.fromkeys(books, "v1")
    made = rounds(kind, ring_buffer_size="2")
    made.play()
    assert 5 * 9 == len(numbers(made))
    if is_gone_between and kind is not OddlyNamedConnector:
        del shelf.objects["b"]
    made.play()

    shelf.objects["b"], shelf.versions["b"] = WHOLE, "v2"
    made.play(killed_at=killed_at)
    made.play()

    assert list(range(9)) == numbers(made)[5 * 9 :]


@pytest.mark.parametrize("kind", POLLED)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_task_that_goes_on_finds_another_version_below_the_look_back(
    shelf: Shelf, kind: type[ShelfConnector], *, is_restarted: bool
) -> None:
    """Once for all: it is read to its end, and looked for no more."""
    books = dict.fromkeys("abcdef", WHOLE)
    shelf.objects, shelf.versions = {**books, "b": b"no Avro"}, dict.fromkeys(books, "v1")
    made = rounds(kind, ring_buffer_size="2")
    connector = kind()
    if is_restarted:
        made.play()
    run = LocalRun(connector, made.props, made.stored)
    connector.start(made.props)
    (task,) = run._tasks()  # pyright: ignore[reportPrivateUsage]
    polled, deadline, left = task.poll, time.monotonic() + 10, 9 if is_restarted else 6 * 9

    def poll() -> Polled:
        nonlocal left
        found = polled()
        if found is not None:
            left -= len(found)
            return found
        shelf.objects["b"], shelf.versions["b"] = WHOLE, "v2"
        return None if not left or time.monotonic() > deadline else ()

    task.poll = poll  # type: ignore[method-assign]
    shelf.opened.clear()
    loop = Loop(task, errors=DEAD, kind=BoundaryKind.POLL, value_converter="string")
    loop.run()
    task.stop()

    sent = [int(value or b"") for topic, _, value in loop.sender.committed if topic == "books"]
    assert list(range(9)) == sent[-9:]
    assert [] == task._scanner._unfinished.before("z")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "policy"), [(LIES, "reread"), (b"no Avro", "fail")])
def test_another_version_begins_again(
    shelf: Shelf, kind: type[SourceConnector], first: bytes, policy: str
) -> None:
    """As native.changed says; of which nothing was sent, in any case."""
    shelf.objects, shelf.versions = {"a": first}, {"a": "v1"}
    made = rounds(kind, native_changed=policy)
    made.play()
    before = numbers(made)

    shelf.objects, shelf.versions = {"a": WHOLE}, {"a": "v2"}
    made.play()

    assert [*before, *range(9)] == numbers(made)
    assert {"version": "v2", "done": True}.items() <= entry(made).items()


def test_a_task_that_goes_on_sees_the_mended_object(shelf: Shelf) -> None:
    """Nothing was sent of it, so native.changed=fail does not speak of it."""
    shelf.objects, shelf.versions = {"a": b"no Avro", "b": WHOLE}, {"a": "v1"}
    task = ShelfTask()
    mended = Shelf(objects={"a": WHOLE, "b": WHOLE}, versions={"a": "v2"})

    class Mending(ShelfSource):
        def items(self, start_from: str | None):  # noqa: ANN202
            if "b" in shelf.opened:
                shelf.objects, shelf.versions = mended.objects, mended.versions
            return super().items(start_from)

    task.source = lambda _: Mending()  # type: ignore[method-assign]
    stored = dict[SourcePartition, SourceOffset]()
    props = {**PROPS, "extractor.class": "avro"}

    loop = played(task, props, stored=stored, idles=3, errors=DEAD)

    assert ["a", "b", "a"] == shelf.opened
    assert 1 == loop.progress.quarantined
    assert {"version": "v2", "done": True}.items() <= stored[partition_of("a")].items()


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_told_at_each_start_and_once(
    shelf: Shelf, kind: Callable[[], SourceConnector], caplog: pytest.LogCaptureFixture
) -> None:
    """With the reason, and what to do."""
    shelf.objects = {"a": LIES}
    made = rounds(kind)  # type: ignore[arg-type]
    made.play()
    caplog.clear()

    connector, known = kind(), StoredOffsets(made.stored)
    connector.initialize(LocalConnectorContext(known))
    connector.start(made.props)
    for _ in range(2):
        if isinstance(connector, PlannedNativeConnector):
            assert not connector.plan(PlanRequest(slots=1, offsets=known)).has_work()
        else:
            connector.task_configs(1)

    (told,) = [each.getMessage() for each in caplog.records]
    assert told.startswith(("a: It is", "key a: It is"))
    assert str(entry(made)["quarantined"]) in told
    assert "native.changed" in told


def test_explaining_shows_it(shelf: Shelf) -> None:
    """A planned source's."""
    shelf.objects = {"a": b"no Avro"}
    made = rounds(PlannedShelfConnector)
    made.play()
    connector: PlannedNativeConnector = PlannedShelfConnector()
    connector.start(made.props)

    (found,) = connector.explain(PlanRequest(slots=1, offsets=StoredOffsets(made.stored)))

    assert ("a", ()) == (found.name, found.slots)
    assert isinstance(found, Explained)
    assert "It is in quarantine" in str(found.reason)


@pytest.mark.parametrize("kind", [LendingConnector, PlannedLendingConnector])
def test_it_is_not_acknowledged(shelf: Shelf, kind: type[SourceConnector]) -> None:
    """The source would delete it."""
    TOLD.clear()
    shelf.objects = {"a": LIES, "b": WHOLE}
    made = rounds(kind)

    made.play()
    made.play()

    assert {"b"} == {key for key, _ in TOLD}


class LouderAvroConnector(ShelfConnector):
    """Evolves each record."""

    task_class = Louder


def test_what_the_last_evolution_left_in_the_offset_stays(shelf: Shelf) -> None:
    """Beside the reason."""
    shelf.objects = {"a": LIES}
    made = rounds(LouderAvroConnector)

    made.play()

    assert {"said": "7!", "recordCount": 8}.items() <= entry(made).items()
    assert "quarantined" in entry(made)
    assert 1 == made.quarantined


POLLS_OF_A = 5
"""Of two records each, and one for the letter."""


class WholeSource(ShelfSource):
    """Cannot go on in the middle."""

    resumes = False


class WholeTask(ShelfTask):
    """Reads objects whole."""

    def source(self, config: SourceConfig) -> WholeSource:
        """The shelf."""
        return WholeSource()


@pytest.mark.parametrize("killed_at", range(1, 12))
def test_an_object_that_is_a_transaction_ends_with_its_letter(shelf: Shelf, killed_at: int) -> None:
    """Its records, the letter and the reason are committed together."""
    shelf.objects = {"a": LIES, "b": WHOLE}
    stored = dict[SourcePartition, SourceOffset]()
    props = {**PROPS, "extractor.class": "avro"}
    found = list[tuple[str, bytes | None]]()

    for kill in (killed_at, None):
        made = played(
            WholeTask(),
            props,
            boundary=BoundaryKind.CONNECTOR,
            stored=stored,
            killed_at=kill,
            errors=DEAD,
        )
        found += [(topic, value) for topic, _, value in made.sender.committed]
        is_aside = "quarantined" in stored.get(partition_of("a"), {})
        assert [("books", str(n).encode()) for n in range(8)] + [("dead", None)] == found[:9] or (
            not is_aside and not found
        )
        assert is_aside or (kill is not None and kill <= POLLS_OF_A)

    assert [*range(8), *range(9)] == [int(value or b"") for _, value in found if value]
    assert 1 == [topic for topic, _ in found].count("dead")


class PackedTask(ShelfTask):
    """Expects gzip."""

    def extractor(self, config: SourceConfig) -> Extractor:
        """JSON lines in it."""
        return StreamExtractor(format=JSONL, compression=Compression.GZIP)


class PackedConnector(ShelfConnector):
    """The shelf, packed."""

    task_class = PackedTask


def test_a_cut_gzip_is_put_aside_and_so_is_one_that_is_cut_before_the_place(shelf: Shelf) -> None:
    """Damage that is met while passing over what was read is told as the other kind is."""
    lines = b"".join(b'{"n":"%s"}\n' % os.urandom(30).hex().encode() for _ in range(40))
    packed = gzip.compress(lines)
    shelf.objects = {"a": packed[:-300]}
    made = rounds(PackedConnector)
    made.play()
    sent = int(str(entry(made)["recordCount"]))
    assert 0 < sent == len(made.values("books")) < 40

    made.stored[partition_of("a")] = {
        name: value for name, value in entry(made).items() if name != "quarantined"
    }
    shelf.objects = {"a": packed[:60]}
    made.play()

    assert (sent, 2) == (len(made.values("books")), made.quarantined)
    assert sent == entry(made)["recordCount"]
    assert "quarantined" in entry(made)
