"""A source of objects for tests: a shelf of books."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from headrace.connect.connector import SourceConnector
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Polled
from headrace.offsets.codec import OffsetKey, decoded_key, decoded_value
from headrace.sources import (
    Context,
    EvolvingRecord,
    NativeConnector,
    NativeItem,
    NativeSource,
    NativeSourceTask,
    PlannedNativeConnector,
    SourceConfig,
    TextKeys,
)
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.testing.task_runs import LocalContext, LocalRun, Stored, StoredOffsets
from task.loop import Loop


@dataclass
class Shelf:
    """Objects by name, with versions; *broken* makes the next opening of an object fail after so many bytes.

    *page* cuts a listing after so many objects, *always_all* makes each begin with the first one.
    *when_broken* happens then.
    """

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    contexts: dict[str, Context[str]] = field(default_factory=dict[str, Context[str]])
    page: int | None = None
    always_all: bool = False
    when_broken: Callable[[], object] = lambda: None
    broken: dict[str, int] = field(default_factory=dict[str, int])
    opened: list[str] = field(default_factory=list[str])
    listed_from: list[str | None] = field(default_factory=list[str | None])
    streams: list[io.BytesIO] = field(default_factory=list[io.BytesIO])


SHELF = Shelf()


class Breaking(io.BytesIO):
    """A stream whose connection is cut behind *after* bytes."""

    def __init__(self, content: bytes, after: int) -> None:
        super().__init__(content)
        self._after = after

    def readinto(self, target: object) -> int:
        """Reads until the connection is cut."""
        view = memoryview(target)[: max(0, self._after - self.tell())]  # pyright: ignore[reportArgumentType]
        if not view:
            SHELF.when_broken()
            raise ConnectionResetError("cut")
        return super().readinto(view)


class Book(NativeItem[str]):
    """One object of the shelf."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._version = SHELF.versions.get(name)

    def context(self) -> Context[str]:
        """Its name is its key."""
        return SHELF.contexts.get(self._name) or Context(native_key=self._name)

    def version(self) -> str | None:
        """What it was when it was listed."""
        return self._version

    def open(self) -> io.BytesIO:
        """Its content, once with a cut."""
        SHELF.opened.append(self._name)
        content = SHELF.objects[self._name]
        after = SHELF.broken.pop(self._name, None)
        SHELF.streams.append(io.BytesIO(content) if after is None else Breaking(content, after))
        return SHELF.streams[-1]


class ShelfSource(NativeSource[str]):
    """Lists the shelf."""

    name = "shelf"
    item_class = Book

    def items(self, start_from: str | None) -> Iterator[Book]:
        """By name."""
        SHELF.listed_from.append(start_from)
        first = "" if SHELF.always_all else start_from or ""
        return iter([Book(name) for name in sorted(SHELF.objects) if name >= first][: SHELF.page])

    def item(self, native_key: str) -> Book:
        """By its name, wherever it was listed."""
        return Book(native_key)

    def key_codec(self) -> TextKeys:
        """Names are text."""
        return TextKeys()


class ShelfTask(NativeSourceTask):
    """Reads the shelf."""

    def source(self, config: SourceConfig) -> ShelfSource:
        """The one shelf there is."""
        return ShelfSource()


class ShelfConnector(NativeConnector):
    """The shelf as a connector."""

    config_class = SourceConfig
    task_class = ShelfTask
    source_class = ShelfSource


class PlannedShelfConnector(PlannedNativeConnector):
    """The shelf, listed on the driver."""

    config_class = SourceConfig
    task_class = ShelfTask
    source_class = ShelfSource


class Louder(ShelfTask):
    """Changes each record."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """An exclamation mark, a key, and a property of the entry."""
        record.value = f"{record.value}!"
        record.key = record.context.native_key
        record.entry.set("said", record.value)
        return record


class LouderConnector(ShelfConnector):
    """The shelf, louder."""

    task_class = Louder


KINDS = [ShelfConnector, PlannedShelfConnector]
PROPS = {"topic": "books", "extractor.class": "lines", "max.poll.records": "2"}


def run(
    stored: Stored,
    stop_after: int | None = None,
    *,
    kind: Callable[[], SourceConnector] = ShelfConnector,
    slots: int = 1,
    **more: str,
) -> list[object]:
    """The values that a run delivers, which ends after so many records as if killed."""
    props = {**PROPS, **{key.replace("_", "."): value for key, value in more.items()}}
    made = LocalRun(kind(), props, stored, slots=slots, stop_after=stop_after)
    return [each.value for each in made.until_idle()]


class Killed(BaseException):
    """The process dies here."""


def partition_of(name: str) -> SourcePartition:
    """The source partition of the book of that *name*."""
    return SourcePartition(key=name)


def played(
    task: NativeSourceTask,
    props: Mapping[str, str],
    *,
    boundary: BoundaryKind = BoundaryKind.POLL,
    stored: Stored | None = None,
    killed_at: int | None = None,
    idles: int = 1,
    errors: ErrorPolicy | None = None,
) -> Loop:
    """What a polled *task* writes until it is idle, in the task loop, where failures of the source pass.

    That is after so many *idles*.

    With *killed_at* its process dies in the poll of that number. *stored* is what was committed, and will be.
    """
    stored = {} if stored is None else stored
    loop = Loop(task, kind=boundary, errors=errors or ErrorPolicy())
    own = loop.requests if boundary is BoundaryKind.CONNECTOR else None
    task.initialize(LocalContext(offsets=StoredOffsets(stored), transaction=own))
    task.start(props)
    polled, polls, idle = task.poll, itertools.count(1), itertools.count(1)

    def poll() -> Polled:
        if next(polls) == killed_at:
            raise Killed
        found = polled()
        return () if found is None and next(idle) < idles else found

    task.poll = poll  # type: ignore[method-assign]
    try:
        with suppress(Killed):
            loop.run()
    finally:
        task.stop()
        stored.update(offsets_of(loop))
    return loop


def offsets_of(loop: Loop) -> dict[SourcePartition, SourceOffset]:
    """What *loop* has committed of offsets."""
    found = dict[SourcePartition, SourceOffset]()
    for key, value in loop.sender.offsets.items():
        name, offset = decoded_key(key), decoded_value(value)
        assert isinstance(name, OffsetKey)
        assert isinstance(offset, Mapping)
        found[name.partition] = offset
    return found
