"""D6: an object that was overwritten after records of it were sent, and what each policy makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import TaskFailedError
from headrace.sources.change_policy import is_changed
from headrace.sources.completion_tracker import CompletionTracker
from headrace.task.connector_spec import BoundaryKind
from headrace.testing.task_runs import LocalContext, Stored, StoredOffsets, records_of
from sources.shelf import KINDS, PROPS, Shelf, ShelfTask, partition_of, played, run
from waiting import until

Kind = Callable[[], SourceConnector]
both = pytest.mark.parametrize("kind", KINDS)


def half_read(shelf: Shelf) -> Stored:
    """A store that says that one record was sent of the first version of *a*."""
    shelf.objects, shelf.versions = {"a": b"1\n2\n3\n", "b": b"4\n"}, {"a": "v1"}
    stored: Stored = {}
    assert ["1"] == run(stored, 1)
    return stored


def overwrite(shelf: Shelf) -> None:
    """The second version of *a*."""
    shelf.objects["a"], shelf.versions["a"] = b"7\n8\n", "v2"


@pytest.mark.parametrize(
    ("sent", "now", "changed"),
    [("v1", "v2", True), ("v1", "v1", False), (None, "v2", False), ("v1", None, False)],
)
def test_only_known_versions_differ(sent: str | None, now: str | None, *, changed: bool):
    """A source that has just learnt to tell versions does not make all its objects new."""
    assert changed is is_changed(sent, now)


@both
def test_by_default_a_half_read_object_that_changed_fails_the_task(shelf: Shelf, kind: Kind):
    """D6: with its key, both versions and what to do; nothing of it is sent, and nothing is stored."""
    stored = half_read(shelf)
    overwrite(shelf)
    before = dict(stored)

    with pytest.raises(
        TaskFailedError, match=r"a: .* had the version v1, and has v2 now\. Set native\.changed"
    ):
        run(stored, kind=kind)

    assert before == stored


@both
def test_an_object_that_changed_after_it_was_done_fails_the_task(shelf: Shelf, kind: Kind):
    """D6: it is noticed after a restart, too."""
    stored = half_read(shelf)
    run(stored, kind=kind)
    overwrite(shelf)

    with pytest.raises(TaskFailedError, match="The object was overwritten"):
        run(stored, kind=kind)


@both
@pytest.mark.parametrize("done", [False, True])
def test_it_is_read_again_from_its_beginning(shelf: Shelf, kind: Kind, *, done: bool):
    """D6: once, whether it was half read or done; what follows is not disturbed."""
    stored = half_read(shelf)
    if done:
        run(stored, kind=kind)
    overwrite(shelf)

    values = run(stored, kind=kind, native_changed="reread")

    assert (["7", "8"] if done else ["7", "8", "4"]) == values
    assert {"version": "v2", "recordCount": 2, "done": True}.items() <= stored[
        partition_of("a")
    ].items()
    assert [] == run(stored, kind=kind, native_changed="reread")


@both
def test_an_object_that_lost_all_its_records_is_done_in_its_new_version(shelf: Shelf, kind: Kind):
    """D6: it shrank to nothing."""
    stored = half_read(shelf)
    overwrite(shelf)
    shelf.objects["a"] = b""

    assert ["4"] == run(stored, kind=kind, native_changed="reread")

    end = stored[partition_of("a")]
    assert ("v2", 0, True) == (end["version"], end["recordCount"], end["done"])


@both
@pytest.mark.parametrize("done", [False, True])
def test_what_is_new_in_it_is_ignored(shelf: Shelf, kind: Kind, *, done: bool):
    """D6: it is left alone for good, and what follows is read."""
    stored = half_read(shelf)
    if done:
        run(stored, kind=kind)
    overwrite(shelf)
    before = stored[partition_of("a")]

    assert ([] if done else ["4"]) == run(stored, kind=kind, native_changed="ignore")

    assert before == stored[partition_of("a")]
    assert [] == run(stored, kind=kind, native_changed="ignore")


class Running:
    """A task that runs on and on, and commits after each poll."""

    def __init__(self, policy: str) -> None:
        self.values = list[object]()
        self.task = ShelfTask()
        self.task.initialize(LocalContext(offsets=StoredOffsets({})))
        self.task.start({**PROPS, "native.changed": policy})

    def has_read(self, *values: str) -> bool:
        """Whether it has delivered these and no others, after one more poll."""
        polled = self.task.poll()
        for batch in [polled] if isinstance(polled, SourceBatch) else ():
            self.values += [each.value for each in records_of(batch)]
            self.task.update_offsets({batch.source_partition: batch.offset_at(-1)})
        self.task.update_offsets({})
        self.task.commit()
        return list(values) == self.values


@pytest.fixture
def running(shelf: Shelf) -> Iterator[Callable[[str], Running]]:
    """Tasks that have read the first version of *a*, by their policies."""
    shelf.objects, shelf.versions = {"a": b"1\n"}, {"a": "v1"}
    tasks = list[Running]()

    def start(policy: str) -> Running:
        tasks.append(Running(policy))
        until(lambda: tasks[-1].has_read("1"))
        return tasks[-1]

    yield start
    for each in tasks:
        each.task.stop()


@pytest.mark.parametrize(("policy", "expected"), [("reread", ["1", "7", "8"]), ("ignore", ["1"])])
def test_a_running_task_sees_it_too(
    shelf: Shelf, running: Callable[[str], Running], policy: str, expected: list[str]
):
    """D6: while the store says nothing of it yet, the task's own ledger does; each version once."""
    task = running(policy)
    overwrite(shelf)
    until(lambda: task.has_read(*expected))
    seen = len(shelf.listed_from)

    until(lambda: task.has_read(*expected) and len(shelf.listed_from) > seen + 4)

    assert expected == task.values


def test_a_running_task_fails_too(shelf: Shelf, running: Callable[[str], Running]):
    """D6: by default."""
    task = running("fail")
    overwrite(shelf)

    with pytest.raises(TaskFailedError, match="The object was overwritten"):
        until(lambda: task.has_read("1", "7", "8"))


def test_an_end_that_was_not_committed_is_none_when_the_object_begins_again():
    """D6: the first version's end must not be written over the second one's offset."""
    endings = CompletionTracker()
    endings.sent(partition_of("a"), {"recordCount": 1, "version": "v1"})
    endings.ended(partition_of("a"), {"recordCount": 1, "version": "v1", "done": True})
    newer = {"recordCount": 1, "version": "v2"}
    endings.sent(partition_of("a"), newer)

    assert endings.due({partition_of("a"): newer}) is None


def cut_and_overwritten(shelf: Shelf) -> None:
    """*a* is cut in its middle, and overwritten before it is opened again."""
    shelf.objects, shelf.versions = {"a": b"1\n" * 50, "b": b"4\n"}, {"a": "v1"}
    shelf.broken = {"a": 60}
    shelf.when_broken = lambda: overwrite(shelf)


@pytest.mark.parametrize("boundary", [BoundaryKind.POLL, BoundaryKind.CONNECTOR])
def test_an_object_that_is_overwritten_while_it_is_read_is_read_again(
    shelf: Shelf, boundary: BoundaryKind
):
    """D6: opening it again does not mix two versions; of a transaction of its own nothing is left."""
    cut_and_overwritten(shelf)

    loop = played(ShelfTask(), {**PROPS, "native.changed": "reread"}, boundary=boundary)

    values = loop.values()
    assert ["7", "8", "4"] == values[-3:]
    assert ({"1"} if boundary is BoundaryKind.POLL else set[str]()) == set(values[:-3])


@pytest.mark.parametrize("boundary", [BoundaryKind.POLL, BoundaryKind.CONNECTOR])
def test_an_object_that_is_overwritten_while_it_is_read_is_left_alone(
    shelf: Shelf, boundary: BoundaryKind
):
    """D6: what follows is read; a transaction of its own does not end with half of it."""
    cut_and_overwritten(shelf)

    loop = played(ShelfTask(), {**PROPS, "native.changed": "ignore"}, boundary=boundary)

    assert "4" == loop.values()[-1]
    assert ({"1"} if boundary is BoundaryKind.POLL else set[str]()) == set(loop.values()[:-1])


def test_an_object_that_is_overwritten_while_it_is_read_fails_the_task(shelf: Shelf):
    """D6: by default."""
    cut_and_overwritten(shelf)

    with pytest.raises(TaskFailedError, match="it had the version v1, and has v2 now"):
        played(ShelfTask(), PROPS)


def test_an_object_that_is_overwritten_before_any_of_it_was_read_is_read(shelf: Shelf):
    """D6: no policy is asked, because no record was sent."""
    cut_and_overwritten(shelf)
    shelf.broken = {"a": 0}

    assert ["7", "8", "4"] == played(ShelfTask(), PROPS).values()


@both
def test_an_object_that_was_begun_in_another_format_does_not_go_on(shelf: Shelf, kind: Kind):
    """Its place in the one means nothing in the other; what was sent stays, and the way back is told."""
    stored = half_read(shelf)
    before = dict(stored)

    with pytest.raises(TaskFailedError, match=r"a: It was read as lines .* go on as bytes"):
        run(stored, kind=kind, extractor_class="bytes")

    assert before == stored
    assert ["2", "3", "4"] == run(stored, kind=kind)
