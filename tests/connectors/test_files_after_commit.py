"""Files that are deleted, moved or tagged: after the commit of their last record, once, and never another file."""

from __future__ import annotations

import errno
import gzip
import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import OffsetsError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.cleanup.after_commit import MoveTarget, move_target
from headrace.connectors.files.cleanup.cleaner import Cleanup
from headrace.connectors.files.cleanup.cleanups import Cleanups, Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local.listing import list_files
from headrace.connectors.files.local.selection import LocalSelection
from headrace.connectors.files.selecting.addresses import Root
from headrace.connectors.files.selecting.named import named_on_disk
from headrace.stores import local
from headrace.stores.catalogue import KINDS
from headrace.stores.errors import ObjectGoneError
from headrace.stores.local import LocalStore
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import LocalRun, StoredOffsets
from task.local_loop import Rounds
from waiting import until

Stored = dict[SourcePartition, SourceOffset]
ENTRY: SourceOffset = {"done": True, "cleanup": "pending", "version": "v1", "size": 1}


def props(path: Path | str, action: str = "delete", **more: str) -> dict[str, str]:
    """The connector's configuration."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    given |= {"files.after.commit": action}
    return given | {key.replace("_", "."): each for key, each in more.items()}


def run(path: Path, stored: Stored, *, stop_after: int | None = None, **more: str) -> list[str]:
    """The values that a run commits."""
    given = props(path, **more)
    delivered = LocalRun(FilesConnector(), given, stored, stop_after=stop_after).until_idle()
    return [each.value for each in delivered]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a plain file, a packed one, an empty one, and one in a folder below."""
    folder = tmp_path / "in"
    (folder / "below").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"three\n"))
    (folder / "c.txt").write_text("")
    (folder / "below" / "a.txt").write_text("four\n")
    return folder


def left(folder: Path) -> list[str]:
    """The files below *folder*."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


# ------------------------------------------------------------------ local disk


def test_what_is_committed_is_deleted_and_its_entry_goes(folder: Path):
    """Empty files, too; what comes under the same name later is a new file."""
    stored: Stored = {}

    assert ["four", "one", "three", "two"] == sorted(run(folder, stored, files_recursive="true"))

    assert ([], {}) == (left(folder), stored)
    (folder / "a.txt").write_text("ONE\n")
    assert ["ONE"] == run(folder, stored)


def test_files_are_moved_as_they_lay(folder: Path, tmp_path: Path):
    """Names below the folder stay, so that none takes another's place."""
    stored: Stored = {}
    done = tmp_path / "done"

    run(folder, stored, action="move", files_move_to=str(done), files_recursive="true")

    assert ([], {}) == (left(folder), stored)
    assert ["a.txt", "b.txt.gz", "below/a.txt", "c.txt"] == left(done)
    assert "one\ntwo\n" == (done / "a.txt").read_text()


def test_keep_writes_nothing_about_it(folder: Path):
    """Entries are as they always were."""
    stored: Stored = {}
    run(folder, stored, action="keep")

    assert ["a.txt", "b.txt.gz", "below/a.txt", "c.txt"] == left(folder)
    assert not any("cleanup" in each for each in stored.values())


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_file_stays_until_its_last_record_is_committed(folder: Path, cut: int):
    """Wherever it was stopped; then nothing is read twice."""
    stored: Stored = {}
    first = run(folder, stored, stop_after=cut)
    half = [path for path in left(folder) if path != "below/a.txt"]
    open_entries = {
        Path(str(partition["filename"])).name
        for partition, offset in stored.items()
        if not offset.get("done")
    }
    assert open_entries <= set(half)

    assert ["one", "two", "three"] == first + run(folder, stored)
    assert ["below/a.txt"] == left(folder)


@pytest.mark.parametrize("action", ["delete", "move"])
def test_a_file_named_in_the_path_may_go(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, action: str
):
    """With its entry: the next one of that name is a new one, even one like it; while there is none, that is told."""
    stored: Stored = {}
    path = folder / "a.txt"
    more = {} if action == "delete" else {"files_move_to": str(tmp_path / "done")}

    assert ["one", "two"] == run(path, stored, action=action, **more)
    assert (False, {}) == (path.exists(), stored)
    assert [] == run(path, stored, action=action, **more)
    assert f"{path}: There is no such file now. One that comes later is read." in caplog.text
    (tmp_path / "done" / "a.txt").unlink(missing_ok=True)
    path.write_text("one\ntwo\n")
    assert ["one", "two"] == run(path, stored, action=action, **more)

    assert (False, {}) == (path.exists(), stored)


def test_a_file_that_is_taken_away_is_no_complaint(folder: Path, caplog: pytest.LogCaptureFixture):
    """Of the connector that has just done it."""
    connector, stored, path = FilesConnector(), Stored(), folder / "a.txt"

    LocalRun(connector, props(path), stored).until_idle()

    assert "no such file" not in caplog.text


@pytest.mark.parametrize("name", ["in/x/", "other/x"])
def test_a_folder_that_is_not_there_is_a_failure(folder: Path, name: str):
    """One whose name ends with a slash, and that of a file; and what is known to have been a folder."""
    with pytest.raises(TaskFailedError, match="does not exist"):
        LocalRun(FilesConnector(), props(f"{folder.parent}/{name}"), {}).until_idle()
    stored = read_all(folder, {})
    folder.rename(folder.parent / "away")
    with pytest.raises(TaskFailedError, match="does not exist"):
        run(folder, stored)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("ran", [False, True])
def test_another_file_under_the_name_of_one_that_was_removed_is_read(
    folder: Path, caplog: pytest.LogCaptureFixture, *, named: bool, ran: bool
):
    """A person removed it while its cleanup was pending, which had found it gone already or not."""
    path = folder / "a.txt"
    selected = path if named else folder
    stored = read_all(selected, {})
    path.unlink()
    if ran:
        assert [] == run(selected, stored)
        assert "gone" == stored[SourcePartition(filename=str(path))]["cleanup"]
    path.write_text("another\n")

    assert ["another"] == run(selected, stored)

    assert (False, {}) == (path.exists(), stored)
    assert "It is another file than the one of this name" in caplog.text


def test_a_named_file_that_was_removed_is_forgotten_in_the_end(folder: Path):
    """Like any other, where it was to be taken away."""
    path = folder / "a.txt"
    stored = read_all(path, {})
    path.unlink()
    assert [] == run(path, stored)
    assert 1 == len(stored)

    assert [] == run(path, stored, files_forget_after_ms="0")

    assert {} == stored


def test_ranges_of_a_file_are_not_files(folder: Path):
    """It is deleted when all of them are read."""
    stored: Stored = {}
    path = folder / "big.txt"
    path.write_text("".join(f"{n}\n" for n in range(100)))
    run(folder / "big.txt", stored, files_split_bytes="50", stop_after=20)
    assert path.exists()
    assert not any("cleanup" in each for each in stored.values())

    run(folder / "big.txt", stored, files_split_bytes="50")

    assert not path.exists()


def test_a_file_in_quarantine_stays(folder: Path):
    """Not all of it was read; it is not even asked for, also when all else is done."""
    (folder / "d.txt.gz").write_bytes(gzip.compress(b"five\n")[:-3])
    played = Rounds(FilesConnector, props(folder) | {"name": "c"}, ErrorPolicy(tolerate=True))
    played.play()
    assert 1 == played.quarantined

    assert [] == run(folder, played.stored)

    assert ["below/a.txt", "d.txt.gz"] == left(folder)
    ((partition, entry),) = played.stored.items()
    assert str(folder / "d.txt.gz") == partition["filename"]
    assert "cleanup" not in entry


# ------------------------------------------------------------------ crashes and other files


def read_all(folder: Path, stored: Stored, **more: str) -> Stored:
    """Read *folder* as a process does that dies right after its last commit."""
    local = LocalRun(FilesConnector(), props(folder, **more), stored)
    local._connector.start(local._props)
    for task in list(local._tasks()):
        local._drain(task)
    return stored


def test_a_kill_between_commit_and_action_leaves_the_note(folder: Path):
    """The next start does it, and reads nothing again."""
    stored = read_all(folder, {})
    assert ["a.txt", "b.txt.gz", "below/a.txt", "c.txt"] == left(folder)
    assert {"pending"} == {str(each["cleanup"]) for each in stored.values()}

    assert [] == run(folder, stored)

    assert (["below/a.txt"], {}) == (left(folder), stored)


def test_a_kill_between_action_and_its_commit_is_no_harm(folder: Path, tmp_path: Path):
    """What is gone already is done."""
    stored = read_all(folder, {})
    before = dict(stored)
    run(folder, stored, action="move", files_move_to=str(tmp_path / "done"))

    assert [] == run(folder, before, action="move", files_move_to=str(tmp_path / "done"))

    assert ["a.txt", "b.txt.gz", "c.txt"] == left(tmp_path / "done")
    assert [(True, "gone")] * 3 == [(each["done"], each["cleanup"]) for each in before.values()]
    assert [] == run(folder, before, action="move", files_move_to=str(tmp_path / "done"))


@pytest.mark.parametrize("action", ["delete", "move"])
def test_a_place_that_is_away_for_a_moment_is_not_read_twice(
    folder: Path, tmp_path: Path, action: str
):
    """Such as a mount that shows an empty folder: what is known stays, and what is left to do is done in the end."""
    more = {"files_move_to": str(tmp_path / "done")} if action == "move" else {}
    stored = read_all(folder, {}, action=action, **more)
    folder.rename(tmp_path / "away")
    folder.mkdir()
    assert [] == run(folder, stored, action=action, **more)
    assert {"gone"} == {each["cleanup"] for each in stored.values()}
    folder.rmdir()
    (tmp_path / "away").rename(folder)

    assert [] == run(folder, stored, action=action, **more)

    assert (["below/a.txt"], {}) == (left(folder), stored)


def test_a_place_to_move_to_that_is_away_is_not_made(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Such as a folder of a disk that is not mounted: it is told and tried again, and done when it is there."""
    archive, stored = tmp_path / "archive", Stored()
    more = {"action": "move", "files_move_to": str(archive / "done")}

    with caplog.at_level(logging.WARNING):
        run(folder, stored, **more)

    assert not archive.exists()
    assert ["a.txt", "b.txt.gz", "below/a.txt", "c.txt"] == left(folder)
    assert f"{archive}, where this folder of files.move.to is to be, is no folder." in caplog.text
    archive.mkdir()
    assert [] == run(folder, stored, **more)
    assert ["done/a.txt", "done/b.txt.gz", "done/c.txt"] == left(archive)


def test_a_place_to_move_to_may_be_away_behind_a_link(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """What the link leads to is what is told."""
    stored = read_all(folder, {}, action="move", files_move_to=str(tmp_path / "done"))
    (tmp_path / "done").symlink_to(tmp_path / "disk" / "done")

    with caplog.at_level(logging.WARNING):
        run(folder, stored, action="move", files_move_to=str(tmp_path / "done"))

    assert "a.txt" in left(folder)
    assert (
        f"{tmp_path}/disk, where this folder of files.move.to is to be, is no folder."
        in caplog.text
    )


def test_another_file_that_comes_in_the_place_of_one_that_was_gone_is_read(folder: Path):
    """It is no change of the one before, whatever files.changed says; nothing is done to it before it is committed."""
    stored = read_all(folder, {})
    for each in folder.glob("*.txt*"):
        each.unlink()
    assert [] == run(folder, stored)
    (folder / "a.txt").write_text("another one\nits end\n")

    assert ["another one"] == run(folder, stored, stop_after=1, files_changed="ignore")
    assert ["a.txt", "below/a.txt"] == left(folder)

    assert ["its end"] == run(folder, stored, files_changed="ignore")
    assert ["below/a.txt"] == left(folder)


def test_what_is_not_selected_any_more_is_left_as_it_is(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    """It was read under an earlier files.path; that is told once, and it is done when it is selected again."""
    stored = read_all(folder, {})

    with caplog.at_level(logging.WARNING):
        assert [] == run(folder / "*.gz", stored)

    assert ["a.txt", "below/a.txt", "c.txt"] == left(folder)
    assert ["pending"] * 2 == [each["cleanup"] for each in stored.values()]
    told = f"files.after.commit says is not done to 2 files that files.path does not select any more, such as {folder}/a.txt"
    assert 1 == caplog.text.count(told)
    assert [] == run(folder, stored)
    assert (["below/a.txt"], {}) == (left(folder), stored)


@pytest.mark.parametrize("recursive", ["false", "true"])
@pytest.mark.parametrize(
    "path",
    [
        "in",
        "in/",
        "in/below",
        "in/*",
        "in/*.txt",
        "**/*.gz",
        "in/**",
        "i[n]/below/*",
        "*/*",
        ".x/*",
    ],
)
def test_what_is_selected_is_known_by_name(folder: Path, path: str, recursive: str):
    """As a listing finds it, in folders and by globs; but for a file that files.path itself names."""
    hidden = ["in/.a", "in/.h/a", ".x/a", ".x/.a", "in/below/.a"]
    for name in (*hidden, "in/below/x/a.gz", "other/a.txt"):
        (folder.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.parent / name).write_text("")
    everything = [str(folder.parent / each) for each in left(folder.parent)]
    config = FilesConfig.parse(props(folder.parent / path, files_recursive=recursive))
    selection = LocalSelection(config, clock=float, tell=lambda *_: None)

    listed = list_files(config.path, recursive=config.recursive)
    assert listed == [each for each in everything if selection.selects(each)]


def test_a_file_that_goes_between_copy_and_deletion_was_not_deleted_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may come back."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.txt"
    path.write_text("one\n")
    (entry,) = read_all(tmp_path / "in", {}).values()
    more = {"files_move_to": str(tmp_path / "done")}
    cleanup = Cleanup(FilesConfig.parse(props(tmp_path / "in", "move", **more)))

    monkeypatch.setattr(local, "renamed", lambda *_: False)
    monkeypatch.setattr(local, "placed", lambda *_: path.unlink())

    assert Outcome.GONE is cleanup.clean(str(path), entry)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_was_rewritten_in_its_place_is_left(
    folder: Path, caplog: pytest.LogCaptureFixture, *, packed: bool
):
    """Inode, size and first bytes are the same: only what was read of it tells."""
    pack = partial(gzip.compress, compresslevel=0, mtime=0) if packed else bytes
    path = folder / ("long.txt.gz" if packed else "long.txt")
    path.write_bytes(pack(b"x" * 2000 + b"\none\n"))
    stored = read_all(folder, {})
    path.write_bytes(pack(b"x" * 2000 + b"\nONE\n"))

    with caplog.at_level(logging.WARNING):
        assert [] == run(folder, stored, files_changed="ignore")

    assert ["below/a.txt", path.name] == left(folder)
    assert "left as it is" in caplog.text


def test_a_kill_between_copy_and_deletion_moves_it_all_the_same(folder: Path, tmp_path: Path):
    """The copy is complete, as it has its name."""
    stored = read_all(folder, {})
    done = tmp_path / "done"
    done.mkdir()
    (done / "a.txt").write_text("one\ntwo\n")

    run(folder, stored, action="move", files_move_to=str(done))

    assert "one\ntwo\n" == (done / "a.txt").read_text()
    assert ["below/a.txt"] == left(folder)


def test_a_file_that_grew_is_deleted_when_all_of_it_is_committed(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    """It is the same one; what is to be done to it waits for its last line, too."""
    stored = read_all(folder, {})
    with (folder / "a.txt").open("a") as file:
        file.write("more")

    assert [] == run(folder, stored, files_min_age_ms="60000")
    assert "a.txt" in left(folder)
    assert ["more"] == run(folder, stored)

    assert (["below/a.txt"], {}) == (left(folder), stored)
    assert "left as it is" not in caplog.text


def test_another_file_is_left_and_told(folder: Path, caplog: pytest.LogCaptureFixture):
    """It is not the one whose records were sent."""
    stored = read_all(folder, {})
    (folder / "a.txt").write_text("ONE\nTWO\n")

    with caplog.at_level(logging.WARNING):
        assert [] == run(folder, stored, files_changed="ignore")

    assert ["a.txt", "below/a.txt"] == left(folder)
    ((partition, entry),) = stored.items()
    assert str(folder / "a.txt") == partition["filename"]
    assert "cleanup" not in entry
    assert "left as it is" in caplog.text


def test_another_file_that_is_read_again_is_deleted_when_that_is_done(folder: Path):
    """The note of the one before does not delete it earlier."""
    stored = read_all(folder, {})
    (folder / "a.txt").write_text("ONE\nTWO\n")

    assert ["ONE", "TWO"] == run(folder, stored, files_changed="reread")

    assert (["below/a.txt"], {}) == (left(folder), stored)


def test_what_fails_is_tried_again_and_nothing_waits_for_it(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """New files are read meanwhile; the log counts."""
    store_delete, broken = LocalStore.delete, [True]

    def delete(store: LocalStore, key: str, version: str) -> bool:
        if broken[0]:
            raise TaskFailedError("This is not allowed.")
        return store_delete(store, key, version)

    monkeypatch.setattr(LocalStore, "delete", delete)
    stored: Stored = {}

    with caplog.at_level(logging.WARNING):
        assert ["one", "two", "three"] == run(folder, stored)
        (folder / "new.txt").write_text("new\n")
        assert ["new"] == run(folder, stored)

    assert ["a.txt", "b.txt.gz", "below/a.txt", "c.txt", "new.txt"] == left(folder)
    assert "files.after.commit=delete: It failed for 4 files" in caplog.text
    assert "once so far: This is not allowed." in caplog.text
    broken[0] = False
    assert [] == run(folder, stored)
    assert (["below/a.txt"], {}) == (left(folder), stored)


# ------------------------------------------------------------------ plans, with a cleaner of the test's own


class HeldCleaner:
    """Does nothing before it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = list[str]()
        self.answer: Callable[[], Outcome] = lambda: Outcome.DONE

    def clean(self, path: str, entry: SourceOffset) -> Outcome:
        """Note it, and answer when the test says so."""
        self.asked.append(path)
        assert self.go.wait(10)
        return self.answer()


@pytest.fixture
def cleaner() -> Iterator[HeldCleaner]:
    """One that the test lets go."""
    made = HeldCleaner()
    yield made
    made.go.set()


@pytest.fixture
def planned(
    folder: Path, cleaner: HeldCleaner, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Stored], Plan]]:
    """Plans of one connector, over and over."""
    monkeypatch.setattr("headrace.connectors.files.cleanup.cleaning._WAIT_SECONDS", 0.01)
    connector = FilesConnector(cleaner=lambda _: cleaner)
    connector.start(props(folder))
    yield lambda stored: connector.plan(PlanRequest(slots=1, offsets=StoredOffsets(stored)))
    connector.stop()


def remove(stored: Stored, plan: Plan) -> Stored:
    """Remove from *stored* what *plan* says, which is nothing that it reads; what is left."""
    read = {split.partition for share in plan.shares for split in share}
    for partition, offset in plan.offsets.items():
        assert offset is None
        assert partition not in read
        del stored[partition]
    return stored


def test_a_plan_does_not_wait_for_what_hangs(
    folder: Path, planned: Callable[[Stored], Plan], cleaner: HeldCleaner
):
    """It asks to be asked again, gives new work, and writes the entry away when it is done."""
    stored = read_all(folder, {})
    first = planned(stored)
    assert (False, {}) == (first.has_work(), dict(first.offsets))
    assert first.ask_again_after
    (folder / "new.txt").write_text("new\n")
    assert planned(stored).has_work()
    (folder / "new.txt").unlink()

    cleaner.go.set()
    until(lambda: not remove(stored, planned(stored)), seconds=10)

    assert 3 == len(cleaner.asked), "each once"


def test_a_file_that_comes_under_the_name_of_one_that_is_going_waits_for_the_next_plan(
    folder: Path, planned: Callable[[Stored], Plan], cleaner: HeldCleaner
):
    """One plan would read it and remove the entry of the one before; and nothing is wrong with it."""
    stored = read_all(folder, {})
    planned(stored)
    for name in ("b.txt.gz", "c.txt"):
        (folder / name).unlink()
    (folder / "a.txt").write_text("other\n")
    assert not planned(stored).has_work()

    cleaner.go.set()
    until(lambda: not remove(stored, planned(stored)), seconds=10)

    (split,) = planned(stored).shares[0]
    assert str(folder / "a.txt") == split.partition["filename"]


def test_a_file_that_was_replaced_while_it_was_going_is_read_by_the_next_plan(
    folder: Path, planned: Callable[[Stored], Plan], cleaner: HeldCleaner
):
    """The cleanup left it alone; then it is another one of the same name, and nothing is asked for again."""
    stored = read_all(folder, {})
    planned(stored)
    (folder / "a.txt").write_text("other\n")
    cleaner.answer = lambda: Outcome.CHANGED
    cleaner.go.set()

    def plans_to_read() -> bool:
        plan = planned(stored)
        stored.update({each: entry for each, entry in plan.offsets.items() if entry})
        return plan.has_work()

    until(plans_to_read, seconds=10)

    assert {"gone"} == {str(each.get("cleanup")) for each in stored.values()}
    assert 1 == cleaner.asked.count(str(folder / "a.txt"))


def test_an_entry_that_says_it_is_missing_is_settled_all_the_same(
    folder: Path, planned: Callable[[Stored], Plan], cleaner: HeldCleaner
):
    """It was seen again since."""
    stored = read_all(folder, {})
    for name in ("b.txt.gz", "c.txt"):
        (folder / name).unlink()
        del stored[SourcePartition(filename=str(folder / name))]
    ((partition, entry),) = stored.items()
    stored[partition] = {**entry, "cleanup": "gone", "missing": 1}
    assert {partition: {**entry, "cleanup": "gone"}} == planned(stored).offsets
    stored[partition] = {**entry, "cleanup": "gone"}
    cleaner.go.set()
    written = dict[SourcePartition, SourceOffset | None]()
    until(lambda: bool(written.update(planned(stored).offsets)) or bool(written), seconds=10)

    assert {partition: None} == written


def test_an_entry_that_was_changed_meanwhile_is_not_written_over(
    folder: Path, planned: Callable[[Stored], Plan], cleaner: HeldCleaner
):
    """A person set it while the file was being cleaned up."""
    stored = read_all(folder, {})
    planned(stored)
    partition = SourcePartition(filename=str(folder / "a.txt"))
    stored[partition] = {"recordCount": 0}
    cleaner.go.set()
    offsets = dict[SourcePartition, SourceOffset | None]()
    until(lambda: bool(offsets.update(planned(stored).offsets)) or len(offsets) == 2, seconds=10)

    assert partition not in offsets


def test_a_file_that_is_to_be_read_again_is_not_cleaned_up_meanwhile(
    folder: Path, cleaner: HeldCleaner
):
    """Its entry is its slot's then."""
    cleaner.go.set()
    stored = read_all(folder, {})
    (folder / "a.txt").write_text("ONE\nTWO\n")
    connector = FilesConnector(cleaner=lambda _: cleaner)
    connector.start(props(folder, files_changed="reread"))

    plan = connector.plan(PlanRequest(slots=1, offsets=StoredOffsets(stored)))
    until(lambda: len(cleaner.asked) == 2, seconds=10)
    connector.stop()

    assert plan.has_work()
    assert str(folder / "a.txt") not in cleaner.asked


def test_only_what_is_done_and_committed_is_asked_for(
    folder: Path, planned: Callable[[Stored], Plan], cleaner: HeldCleaner
):
    """An entry without the note, or of a file that is half read, does not count."""
    stored = read_all(folder, {})
    half, done, pending = stored
    stored[half] = {key: value for key, value in stored[half].items() if key != "done"}
    stored[done] = {key: value for key, value in stored[done].items() if key != "cleanup"}

    planned(stored)
    planned(stored)

    until(lambda: bool(cleaner.asked), seconds=10)
    assert [pending["filename"]] == cleaner.asked


def test_to_explain_is_not_to_do(folder: Path):
    """It shows what is left to do."""
    stored = read_all(folder, {})
    connector = FilesConnector()
    connector.start(props(folder))

    rows = list(connector.explain(PlanRequest(slots=1, offsets=StoredOffsets(stored))))
    connector.stop()

    assert ["a.txt", "b.txt.gz", "below/a.txt", "c.txt"] == left(folder)
    assert 3 == sum("files.after.commit" in (row.reason or "") for row in rows)


# ------------------------------------------------------------------ threads and back-off


class Moments:
    """A clock under the test's control."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class FailingCleaner:
    """Fails until it is mended."""

    def __init__(self) -> None:
        self.broken = True
        self.attempts = 0

    def clean(self, path: str, entry: SourceOffset) -> Outcome:
        """Fail, and count."""
        self.attempts += 1
        if self.broken:
            raise OSError("busy")
        return Outcome.DONE


def test_a_failure_is_tried_again_less_and_less_often():
    """A run that ends with its work waits for the first attempts only."""
    clock, cleaner = Moments(), FailingCleaner()
    cleanups = Cleanups(lambda: cleaner, clock=clock)
    waits = list[float | None]()
    for attempt in range(1, 12):
        cleanups.ask({"/a": ENTRY})
        assert [] == cleanups.taken(wait_seconds=10)
        failure = cleanups.failures()["/a"]
        assert (attempt, "busy") == (failure.attempts, failure.reason)
        waits.append(cleanups.again_after())
        cleanups.ask({"/a": ENTRY})
        cleanups.taken(wait_seconds=10)
        assert attempt == cleaner.attempts, "not before it is due"
        assert min(2.0 ** (attempt - 1), 300.0) == failure.due - clock.now
        clock.now = failure.due

    assert [1.0, 2.0, *[None] * 9] == waits
    cleaner.broken = False
    cleanups.ask({"/a": ENTRY})
    (cleaned,) = cleanups.taken(wait_seconds=10)
    assert ("/a", Outcome.DONE) == (cleaned.path, cleaned.outcome)
    assert not cleanups.failures()
    cleanups.stop()


def test_what_is_not_asked_for_any_more_is_forgotten():
    """Its failures, too."""
    cleaner = FailingCleaner()
    cleanups = Cleanups(lambda: cleaner)
    cleanups.ask({"/a": ENTRY})
    cleanups.taken(wait_seconds=10)

    cleanups.ask({})

    assert ({}, None) == (dict(cleanups.failures()), cleanups.again_after())
    cleanups.stop()


def test_a_cleaner_that_cannot_be_made_is_a_failure_like_others():
    """Such as one of a store whose settings its library does not accept."""

    def make() -> Any:  # noqa: ANN401
        raise TaskFailedError("There is no such profile.")

    cleanups = Cleanups(make)
    cleanups.ask({"/a": ENTRY})
    cleanups.taken(wait_seconds=10)

    assert "There is no such profile." == cleanups.failures()["/a"].reason
    cleanups.stop()


def test_threads_end_with_the_connector():
    """What waits then is left to the next start."""
    cleaner = HeldCleaner()
    cleanups = Cleanups(lambda: cleaner)
    cleanups.ask({f"/{n}": ENTRY for n in range(9)})
    until(lambda: len(cleaner.asked) == 4, seconds=10)

    cleanups.stop()
    cleaner.go.set()

    until(lambda: not any(each.is_alive() for each in cleanups._threads), seconds=10)
    assert 4 == len(cleaner.asked)


# ------------------------------------------------------------------ names, settings, offsets


@pytest.mark.parametrize(
    ("path", "move_to", "recursive", "name", "expected"),
    [
        ("/in", "/done", "false", "in/a", "done/a"),
        ("/in", "/done/", "true", "in/x/a", "done/x/a"),
        ("/in/*.txt", "/done", "false", "in/a.txt", "done/a.txt"),
        ("/in/**/*.txt", "/done", "false", "in/x/a.txt", "done/x/a.txt"),
        ("/in/a.txt", "/done", "false", "in/a.txt", "done/a.txt"),
        ("/in/a,/in/b", "/done", "true", "in/a/x", "done/a/x"),
        ("/in/a,/in/b", "/done", "true", "other/x", "done/other/x"),
        ("s3://b/in/", "s3://b/done/", "true", "in/x/a", "done/x/a"),
        ("s3://b/in/na", "s3://b/done", "true", "in/name", "done/name"),
        ("s3://b/in//", "s3://b/", "true", "in///a", "/a"),
        ("s3://b/", "s3://b/.done/", "true", "x/a", ".done/x/a"),
    ],
)
def test_the_name_of_what_is_moved(
    *, path: str, move_to: str, recursive: str, name: str, expected: str
):
    """As it lay below what is selected."""
    more = {"files_move_to": move_to, "files_recursive": recursive}
    assert () == FilesConfig.problems(props(path, "move", **more))
    target = move_target(FilesConfig.parse(props(path, "move", **more)))

    assert expected == target.of(name)
    assert not target.is_selected(expected)


S3 = "s3://b/in/"


@pytest.mark.parametrize(
    ("given", "key", "told"),
    [
        (props("/in", "move"), "files.move.to", "needs it"),
        (props(S3, "tag"), "files.tag", "needs it"),
        (props("/in", "keep", files_move_to="/x"), "files.move.to", "no effect"),
        (props("/in", "delete", files_tag="a=b"), "files.tag", "no effect"),
        (props("/in", "delete", files_follow="true"), "files.after.commit", "files.follow"),
        (props("/in", "tag", files_tag="a=b"), "files.after.commit", "local disk have no tags"),
        (props("gs://bucket/", "tag", files_tag="a=b"), "files.after.commit", "gs:// have no tags"),
        (props(S3, "tag", files_tag="done"), "files.tag", "equals sign"),
        (props(S3, "move", files_move_to="/done"), "files.move.to", "begin with s3://b/"),
        (props(S3, "move", files_move_to="s3://c/done/"), "files.move.to", "begin with s3://b/"),
        (props("/in", "move", files_move_to="s3://b/"), "files.move.to", "on local disk"),
        (props("/in", "move", files_move_to="/in"), "files.move.to", "be selected"),
        (
            props("/in", "move", files_move_to="/in/done", files_recursive="true"),
            "files.move.to",
            "be selected",
        ),
        (props("/in/a,/in/b", "move", files_move_to="/in"), "files.move.to", "be selected"),
        (props("/in/**/*.txt", "move", files_move_to="/in/done"), "files.move.to", "be selected"),
        (props("/in/a.txt", "move", files_move_to="/in"), "files.move.to", "be selected"),
        (
            props(S3, "move", files_move_to="s3://b/in/done/", files_recursive="true"),
            "files.move.to",
            "be selected",
        ),
        (
            props("s3://b/in", "move", files_move_to="s3://b/in.done/", files_recursive="true"),
            "files.move.to",
            "be selected",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(given: dict[str, str], key: str, told: str):
    """With the reason."""
    ((found, sentence),) = FilesConfig.problems(given)

    assert key == found
    assert told in sentence


@pytest.mark.parametrize(
    ("path", "move_to"),
    [("/in", "/in/done"), ("/in", "/in/.done"), ("/in/*.txt", "/in/done"), (S3, "s3://b/in/done/")],
)
def test_a_folder_below_that_is_not_selected_is_accepted(path: str, move_to: str):
    """As far as files.recursive is false, or its name begins with a dot."""
    assert () == FilesConfig.problems(props(path, "move", files_move_to=move_to))


def test_what_validation_cannot_see_is_refused_when_it_is_there(tmp_path: Path):
    """A file is never moved to where it would be read again."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.txt").write_text("one\n")
    config = FilesConfig.parse(props(tmp_path / "b", "move", files_move_to=str(tmp_path / "c")))
    cleanup = Cleanup(config)
    cleanup._target = MoveTarget(
        folder=f"{str(tmp_path)[1:]}/b/", selectors=move_target(config).selectors, recursive=False
    )
    (entry,) = read_all(tmp_path / "b", {}).values()

    with pytest.raises(TaskFailedError, match="read again"):
        cleanup.clean(str(tmp_path / "b" / "a.txt"), entry)


def test_a_copy_that_is_gone_is_not_a_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Somebody removed it at once; the file stays, and that is told."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.txt"
    path.write_text("one\n")
    (entry,) = read_all(tmp_path / "in", {}).values()
    more = {"files_move_to": str(tmp_path / "done")}
    cleanup = Cleanup(FilesConfig.parse(props(tmp_path / "in", "move", **more)))

    def gone(_source: str, target: str) -> None:
        raise FileNotFoundError(errno.ENOENT, "gone", target)

    monkeypatch.setattr(local, "renamed", lambda *_: False)
    monkeypatch.setattr(local, "placed", gone)

    with pytest.raises(ObjectGoneError, match="done/a"):
        cleanup.clean(str(path), entry)
    assert path.exists()


def test_what_has_tags_is_known_before_a_store_is_opened():
    """The table says what the adapters say."""
    from headrace.stores.azure.store import AzureStore
    from headrace.stores.gcs.store import GcsStore
    from headrace.stores.s3.store import S3Store

    stores = {"s3": S3Store, "gs": GcsStore, "az": AzureStore}
    assert {scheme: kind.has_tags for scheme, kind in KINDS.items()} == {
        scheme: store.capabilities.has_tags for scheme, store in stores.items()
    }


@pytest.mark.parametrize(
    ("path", "named"), [("/in/a,/in/b", {"/in/a", "/in/b"}), ("s3://b/in/a", set[str]())]
)
def test_only_paths_on_disk_are_named_there(path: str, named: set[str]):
    """An address is no path, whatever folder the worker runs in."""
    assert named == named_on_disk(FilesConfig.parse(props(path)))


def test_a_path_of_another_place_is_a_failure():
    """Such as one from before files.path was changed."""
    cleanup = Cleanup(FilesConfig.parse(props("/in")))

    with pytest.raises(TaskFailedError, match=r"s3://b/a: This is not in the place"):
        cleanup.clean(Root(scheme="s3", place="b").address("a"), ENTRY)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"done": True, "cleanup": "now"}, "must be pending or gone"),
        ({"done": True, "cleanup": True}, "must be a string"),
        ({"recordCount": 1, "cleanup": "pending"}, "without 'done'"),
    ],
)
def test_offsets_are_vetoed(offset: SourceOffset, words: str):
    """What a plan would not understand."""
    partition = SourcePartition(filename="s3://b/a")
    FilesConnector().validate_offsets({}, {partition: ENTRY})
    with pytest.raises(OffsetsError, match=words):
        FilesConnector().validate_offsets({}, {partition: offset})
