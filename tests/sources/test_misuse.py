"""Mistakes of authors: each is told at once, with its class and its method."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.connect.record import Header
from headrace.sources import Context, EvolvingRecord, NativeConnector, NativeSource
from headrace.sources.config import SourceConfig
from sources.shelf import (
    PROPS,
    SHELF,
    Book,
    PlannedShelfConnector,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
    run,
)


class OddBook(Book):
    """Gives what the test says."""

    gives: ClassVar[dict[str, Any]] = {}

    def version(self) -> Any:  # noqa: ANN401
        """Whatever."""
        return self.gives.get("version")

    def open(self) -> Any:  # noqa: ANN401
        """Whatever."""
        return self.gives.get("open", super().open())

    def estimated_length(self) -> Any:  # noqa: ANN401
        """Whatever."""
        return self.gives.get("estimated_length", super().estimated_length())

    def context(self) -> Any:  # noqa: ANN401
        """Whatever."""
        return self.gives.get("context", super().context())


class PropertyBook(Book):
    """Takes a method for a property."""

    @property
    def version(self) -> str:  # type: ignore[override]
        """As a property."""
        return "1"


class ShadowBook(Book):
    """Hides a method behind a value."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.context = Context(native_key=name)  # type: ignore[method-assign, assignment]


class OddShelf(ShelfSource):
    """Gives what the test says."""

    item_class = OddBook

    def items(self, start_from: str | None) -> Any:  # noqa: ANN401
        """Whatever."""
        found = OddBook.gives.get("items", [OddBook(name) for name in sorted(SHELF.objects)])
        if isinstance(found, Exception):
            raise found
        return found

    def item(self, native_key: str) -> Any:  # noqa: ANN401
        """Whatever."""
        found = OddBook.gives.get("item", OddBook(native_key))
        if isinstance(found, Exception):
            raise found
        return found


class OddTask(ShelfTask):
    """Reads it."""

    def source(self, config: object) -> Any:  # noqa: ANN401
        """The odd one."""
        return OddBook.gives.get("source", OddShelf())


class OddConnector(ShelfConnector):
    """The odd shelf."""

    task_class = OddTask
    source_class = OddShelf


class PlannedOddConnector(PlannedShelfConnector):
    """The odd shelf, listed on the driver."""

    task_class = OddTask
    source_class = OddShelf


@pytest.mark.parametrize("kind", [OddConnector, PlannedOddConnector])
@pytest.mark.parametrize(
    ("method", "given", "told"),
    [
        ("items", None, "OddShelf.items gave None. It must give an iterator of items"),
        (
            "items",
            ["a"],
            "OddShelf.items gave an object of class str. It must give what extends NativeItem",
        ),
        (
            "items",
            [PropertyBook("a")],
            r"PropertyBook\.version must be a method, not a property\.",
        ),
        ("items", [ShadowBook("a")], r"ShadowBook\.context must be a method, not a value\."),
        (
            "items",
            ValueError("no"),
            r"shelf: OddShelf\.items raised ValueError: no\. It must raise an OSError where",
        ),
        ("source", None, r"OddTask\.source gave None\. It must give a NativeSource\."),
        ("version", 3, "OddBook.version gave an object of class int. It must give a str or None"),
        (
            "open",
            io.StringIO("1\n"),
            "OddBook.open gave an object of class StringIO. It must give a stream of bytes",
        ),
        ("open", b"1\n", "OddBook.open gave an object of class bytes"),
        ("context", None, "OddBook.context gave None. It must give a Context"),
        (
            "context",
            Context(native_key="a", partition=-1),
            "a: OddBook.context tells the Kafka partition -1",
        ),
    ],
)
def test_what_an_author_must_not_give_is_told(
    shelf: Shelf,
    monkeypatch: pytest.MonkeyPatch,
    *,
    kind: type[ShelfConnector],
    method: str,
    given: object,
    told: str,
):
    """Wherever the source is listed."""
    shelf.objects = {"a": b"1\n"}
    monkeypatch.setitem(OddBook.gives, method, given)

    with pytest.raises(TaskFailedError, match=told):
        run({}, kind=kind)


@pytest.mark.parametrize("kind", [OddConnector, PlannedOddConnector])
def test_the_trace_of_the_authors_own_error_is_in_the_log(
    shelf: Shelf,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[ShelfConnector],
):
    """Also of one in the middle of a listing."""

    def broken() -> Iterator[Book]:
        yield OddBook("a")
        raise KeyError("page")

    shelf.objects = {"a": b"1\n"}
    monkeypatch.setitem(OddBook.gives, "items", broken())

    with pytest.raises(TaskFailedError, match=r"OddShelf\.items raised KeyError: 'page'") as caught:
        run({}, kind=kind)

    assert isinstance(caught.value.__cause__, KeyError)
    assert "in broken" in caplog.text


@pytest.mark.parametrize("length", ["12", None, True])
def test_a_length_that_is_none_is_told(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, length: object
):
    """Where work is shared out by it."""
    shelf.objects = {"a": b"1\n"}
    monkeypatch.setitem(OddBook.gives, "estimated_length", length)

    with pytest.raises(
        TaskFailedError,
        match=r"OddBook\.estimated_length gave .*\. It must give a whole number of bytes, or",
    ):
        run({}, kind=PlannedOddConnector)


def test_what_looking_up_an_item_raises_is_told(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    """With the method of the author."""
    shelf.objects = {"a": b"1\n"}
    monkeypatch.setitem(OddBook.gives, "item", ZeroDivisionError("by 0"))

    with pytest.raises(TaskFailedError, match=r"OddShelf\.item raised ZeroDivisionError: by 0\."):
        run({}, kind=PlannedOddConnector)


def test_an_item_that_is_none_is_told(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    """Where it is looked up by its key."""
    shelf.objects = {"a": b"1\n"}
    monkeypatch.setitem(OddBook.gives, "item", None)

    with pytest.raises(TaskFailedError, match=r"OddShelf\.item gave None"):
        run({}, kind=PlannedOddConnector)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: None, "Wrong.last_evolution gave None. It must give the one record"),
        (lambda record: [record], "Wrong.last_evolution gave an object of class list"),
        (
            lambda record: setattr(record, "headers", (("a", 1),)) or record,
            r"a: Wrong.last_evolution gave the headers .* They must be a tuple of Header",
        ),
        (
            lambda record: setattr(record, "headers", [Header("a")]) or record,
            "They must be a tuple of Header",
        ),
        (
            lambda record: setattr(record, "partition", -2) or record,
            "a: Wrong.last_evolution tells the Kafka partition -2",
        ),
    ],
)
def test_a_last_evolution_gives_one_record(shelf: Shelf, change: Any, told: str):  # noqa: ANN401
    """With headers, and with a partition that there can be."""

    class Wrong(ShelfTask):
        """Does not."""

        def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
            """Something else."""
            return change(record)

    class Connector(ShelfConnector):
        """Runs it."""

        task_class = Wrong

    shelf.objects = {"a": b"1\n"}
    with pytest.raises(TaskFailedError, match=told):
        run({}, kind=Connector)


def test_a_last_evolution_of_batches_gives_a_batch(shelf: Shelf):
    """And not nothing."""

    class Wrong(ShelfTask):
        """Does not."""

        def last_evolution_of_batch(self, batch: object, context: object) -> Any:  # noqa: ANN401
            """Nothing."""

    class Connector(ShelfConnector):
        """Runs it."""

        task_class = Wrong

    shelf.objects = {"a": b"1\n"}
    with pytest.raises(TaskFailedError, match=r"Wrong\.last_evolution_of_batch gave None"):
        run({}, kind=Connector)


def test_an_object_that_tells_no_partition_is_named(shelf: Shelf):
    """Where partitions are shared out."""
    shelf.objects = {"a": b"1\n"}

    with pytest.raises(TaskFailedError, match="a: It tells no Kafka partition"):
        run({}, distribution_type="PARTITION")


def test_a_class_that_is_left_out_is_a_problem():
    """Of the connector, and of its source."""

    class Empty(NativeConnector):
        """Says nothing of its source."""

        config_class = SourceConfig

    told = [sentence for _, sentence in Empty().problems(PROPS)]
    assert ["Empty lacks task_class", "Empty lacks source_class"] == [
        each.partition(":")[0] for each in told
    ]


def test_what_a_source_leaves_out_is_a_problem():
    """Before anything asks for it."""

    class Bare(NativeSource[str]):
        """Says neither what it is called nor what its items are."""

        def items(self, start_from: str | None) -> Iterator[Book]:
            """None."""
            return iter(())

    class Connector(PlannedShelfConnector):
        """Runs it."""

        source_class = Bare

    told = [sentence for _, sentence in Connector().problems(PROPS)]
    assert ["Bare lacks name", "Bare lacks item_class"] == [each.partition(":")[0] for each in told]


@pytest.mark.parametrize("kind", [OddConnector, PlannedOddConnector])
def test_a_listing_that_cannot_seek_fails_once(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, kind: type[ShelfConnector]
):
    """It is an ``OSError`` for Python, and not one that passes."""

    def refused() -> Iterator[Book]:
        raise io.UnsupportedOperation("seek")
        yield Book("a")

    monkeypatch.setitem(OddBook.gives, "items", refused())

    with pytest.raises(TaskFailedError, match="shelf cannot be listed"):
        run({}, kind=kind)


def test_who_fails_a_suite_sees_the_values_that_differ(tmp_path: Path):
    """The suites' asserts are told as those of a test are."""
    (tmp_path / "test_it.py").write_text(
        "from headrace.testing.format_suite import Found, check_resume\n"
        "import headrace.testing.native_suite as suite\n"
        "def test_it():\n"
        "    assert suite.__loader__.__class__.__name__ == 'AssertionRewritingHook'\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert 0 == done.returncode, done.stdout
