"""Files that appear, grow, shrink, are replaced or vanish, while their offsets say what was read."""

from __future__ import annotations

import gzip
import logging
import os
from pathlib import Path

import pytest

from connectors.files_steps import Steps
from connectors.vetoes import veto
from headrace.connect import OffsetsError, SourceOffset, SourcePartition, TaskFailedError
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]


def run(path: Path, stored: Stored, *, stop_after: int | None = None, **props: str) -> list[str]:
    """The values that a run commits."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    given |= {key.replace("_", "."): each for key, each in props.items()}
    delivered = LocalRun(FilesConnector(), given, stored, stop_after=stop_after).until_idle()
    return [each.value for each in delivered]


def half_read(path: Path) -> Stored:
    """Write three lines, and read the first two of them."""
    path.write_text("one\ntwo\nthree\n")
    stored: Stored = {}
    assert ["one", "two"] == run(path, stored, stop_after=2)
    return stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A text file's path."""
    return tmp_path / "a.txt"


def test_files_that_appear_are_found(path: Path) -> None:
    """The next plan has what is new, and only that."""
    stored: Stored = {}
    path.write_text("one\n")
    assert ["one"] == run(path.parent, stored)
    (path.parent / "b.txt").write_text("two\n")

    assert ["two"] == run(path.parent, stored)


def test_a_file_that_shrank_fails(path: Path) -> None:
    """The sentence has both sizes and what to do."""
    stored = half_read(path)
    os.truncate(path, 3)

    with pytest.raises(
        TaskFailedError, match="shrank to 3 bytes; records of its first 8 were sent"
    ) as caught:
        run(path, stored)

    assert str(caught.value).startswith(f"{path}: ")
    assert "files.changed=reread" in str(caught.value)


@pytest.mark.parametrize("same_inode", [True, False])
def test_a_replaced_file_fails(path: Path, same_inode: bool) -> None:  # noqa: FBT001
    """Another file under the name is noticed by what was sent of the first one."""
    stored = half_read(path)
    if same_inode:
        path.write_text("ONE\nTWO\nTHREE\nFOUR\n")
    else:
        other = path.with_suffix(".new")
        other.write_text("one\ntwO\nthree\n")
        other.rename(path)

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        run(path, stored)


def test_a_done_file_that_is_replaced_fails(path: Path) -> None:
    """What was read to its end is watched, too."""
    stored: Stored = {}
    path.write_text("one\n")
    run(path, stored)
    path.write_text("ONE\n")

    with pytest.raises(TaskFailedError, match="replaced"):
        run(path, stored)


def test_a_changed_file_may_be_read_again(path: Path) -> None:
    """With files.changed=reread the new content is read from its beginning, once."""
    stored = half_read(path)
    path.write_text("new\n")

    assert ["new"] == run(path, stored, files_changed="reread")
    assert [] == run(path, stored, files_changed="reread")


def test_a_changed_file_may_be_left_alone(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With files.changed=ignore nothing more of it is read, and the log says so."""
    stored = half_read(path)
    path.write_text("new\n")

    with caplog.at_level(logging.WARNING):
        assert [] == run(path, stored, files_changed="ignore")
    assert "left alone" in caplog.text


def test_rereading_removes_ranges(path: Path) -> None:
    """Offsets of ranges of the old file do not stay."""
    path.write_text("one\ntwo\nthree\n")
    stored: Stored = {}
    run(path, stored, stop_after=1, files_split_bytes="4")
    path.write_text("new\n")

    assert ["new"] == run(path, stored, files_changed="reread", files_split_bytes="4")
    assert [SourcePartition(filename=str(path))] == list(stored)


def test_a_half_read_file_that_vanished_fails(path: Path) -> None:
    """Deleting what was not read to its end is an error, unless it is meant."""
    stored = half_read(path)
    path.unlink()

    with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
        run(path.parent, stored)
    assert [] == run(path.parent, stored, files_missing="ignore")


def test_a_finished_file_may_vanish(path: Path) -> None:
    """Also when files.path names it."""
    stored: Stored = {}
    path.write_text("one\n")
    run(path, stored)
    path.unlink()

    assert [] == run(path, stored)


def test_growth_is_followed_if_asked(path: Path) -> None:
    """A file goes on where it ended; a line without end waits for its end."""
    stored: Stored = {}
    path.write_text("one\ntw")
    assert ["one"] == run(path, stored, files_follow="true")
    with path.open("a") as file:
        file.write("o\nthree\n")

    assert ["two", "three"] == run(path, stored, files_follow="true")


def grow(path: Path, text: str) -> None:
    """Write *text* behind what there is."""
    with path.open("a", newline="") as file:
        file.write(text)


POLICIES = ["fail", "reread", "ignore", "tail"]


@pytest.mark.parametrize("changed", POLICIES)
def test_a_file_that_grew_after_its_end_goes_on_there(path: Path, changed: str) -> None:
    """It is the same one, which is no change; each time, and nothing is read twice."""
    stored: Stored = {}
    path.write_text("one\n")
    run(path, stored, files_changed=changed)

    for text in ("two", "three"):
        grow(path, f"{text}\n")
        assert [text] == run(path, stored, files_changed=changed)
        assert [] == run(path, stored, files_changed=changed)
    (entry,) = stored.values()
    assert (3, True) == (entry["recordCount"], entry["done"])


def test_growth_is_read_in_one_piece(path: Path) -> None:
    """However much it is: the line end of the last record comes first."""
    stored: Stored = {}
    path.write_text("one\ntwo")
    run(path, stored)
    grow(path, "\nthree\nfour\nfive\n")

    assert ["three", "four", "five"] == run(path, stored, files_split_bytes="5")


def test_rows_that_come_later_go_on_under_their_header(tmp_path: Path) -> None:
    """Also behind a last row that had no line end."""
    path, stored = tmp_path / "a.csv", Stored()
    path.write_text("a,b\n1,2")
    assert ['{"a":"1","b":"2"}'] == run(path, stored)
    grow(path, '\r\n3,"x\ny"\n')

    assert ['{"a":"3","b":"x\\ny"}'] == run(path, stored)


def test_growth_that_is_too_young_waits_for_its_line_end(path: Path) -> None:
    """As in a file that was not read to its end yet."""
    stored: Stored = {}
    path.write_text("one\n")
    run(path, stored)
    grow(path, "two\nthr")
    assert ["two"] == run(path, stored, stop_after=1, files_min_age_ms="60000")

    plan = Steps(path, stored, files_min_age_ms="60000").plan()

    assert not plan.shares
    assert plan.ask_again_after is not None


@pytest.mark.parametrize("changed", ["fail", "reread", "ignore"])
def test_a_last_record_that_goes_on_is_for_files_changed(
    path: Path, caplog: pytest.LogCaptureFixture, changed: str
) -> None:
    """No half of a record is sent, and none is left without a word."""
    stored: Stored = {}
    path.write_text("one\ntw")
    run(path, stored)
    grow(path, "o\nthree\n")

    if changed == "fail":
        with pytest.raises(TaskFailedError, match=f"^{path}: Its last record .* at byte 6"):
            run(path, stored)
        return
    read_again = ["one", "two", "three"] if changed == "reread" else []
    assert read_again == run(path, stored, files_changed=changed)
    assert "Its last record was sent without a line end" in caplog.text


@pytest.mark.parametrize("changed", ["fail", "reread", "ignore"])
def test_a_packed_file_that_grew_is_for_files_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changed: str
) -> None:
    """Nothing tells where its records ended."""
    path, stored = tmp_path / "a.txt.gz", Stored()
    path.write_bytes(gzip.compress(b"one\n"))
    run(path, stored)
    with path.open("ab") as file:
        file.write(gzip.compress(b"two\n"))

    if changed == "fail":
        with pytest.raises(TaskFailedError, match="grew by 24 bytes"):
            run(path, stored)
        return
    assert ["one", "two"] * (changed == "reread") == run(path, stored, files_changed=changed)
    assert "grew by 24 bytes" in caplog.text


@pytest.mark.parametrize("changed", ["fail", "reread", "ignore"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a\n1\n"),
        ("a\n", "a\n1\n"),
        ("a", "a\n1\n"),
        ("longer\n", "a\n1\n"),
        ("z\n", "a\n1\n"),
    ],
    ids=["empty", "header", "half a header", "shorter", "another"],
)
def test_a_file_of_which_nothing_was_sent_begins_again(
    tmp_path: Path, before: str, after: str, changed: str
) -> None:
    """Whatever became of it, and whatever files.changed says."""
    path, stored = tmp_path / "a.csv", Stored()
    path.write_text(before)
    assert [] == run(path, stored)
    path.write_text(after)

    assert ['{"a":"1"}'] == run(path, stored, files_changed=changed)
    assert [] == run(path, stored, files_changed=changed)


def test_what_is_shorter_is_not_read_before_its_last_line_is_whole(path: Path) -> None:
    """It is too young: the line may go on."""
    stored: Stored = {}
    path.write_text("one\ntwo\n")
    run(path, stored)
    path.write_text("a\nb")
    steps = Steps(path, stored, files_changed="reread", files_min_age_ms="60000")

    assert [1] == [len(batch) for batch in steps.batches()]


def test_what_shrank_tells_what_is_true(path: Path) -> None:
    """Not all that there was had been sent."""
    stored = half_read(path)
    ((partition, entry),) = stored.items()
    old = {key: each for key, each in entry.items() if not key.startswith("check")}
    os.truncate(path, 12)

    with pytest.raises(
        TaskFailedError, match="to 12 bytes; it had 14 when records of it were sent"
    ):
        run(path, {partition: old})


def test_a_file_that_vanished_is_named_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the warning as well as in the error."""
    stored = half_read(path)
    path.unlink()

    run(path.parent, stored, files_missing="ignore")

    assert 1 == caplog.text.count(str(path))


def test_a_file_that_grows_while_it_is_read_is_not_done(path: Path) -> None:
    """What came after the plan is read in the next round, whatever files.follow says."""
    path.write_text("one\ntwo\n")
    stored: Stored = {}
    local = LocalRun(
        FilesConnector(), {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}, stored
    )
    local._connector.start(local._props)
    (task,) = local._tasks()
    with path.open("a") as file:
        file.write("three\n")
    local._drain(task)
    assert ["one", "two"] == [each.value for each in local.delivered]
    assert "done" not in next(iter(stored.values()))

    assert ["three"] == run(path, stored)


def test_a_file_replaced_after_the_plan_is_left_to_the_next(path: Path) -> None:
    """The slot looks whether it has the planned file; the next plan reads what is there then."""
    path.write_text("one\ntwo\n")
    stored: Stored = {}
    local = LocalRun(
        FilesConnector(), {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}, stored
    )
    local._connector.start(local._props)
    (task,) = local._tasks()
    path.write_text("other\n")
    local._drain(task)
    assert [] == local.delivered

    assert ["other"] == run(path, stored)


def test_another_format_does_not_go_on(tmp_path: Path) -> None:
    """Resuming under a changed dialect fails with both of them."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    stored: Stored = {}
    run(path, stored, stop_after=1)

    with pytest.raises(TaskFailedError, match="cannot go on as csv") as caught:
        run(path, stored, csv_delimiter=";")
    assert '";"' in str(caught.value)
    assert "another name" in str(caught.value)


def test_a_place_behind_an_unknown_header_fails(tmp_path: Path) -> None:
    """A row is never taken for the header, unless the names are configured."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    stored: Stored = {SourcePartition(filename=str(path)): {"recordCount": 1, "anchor": 8}}

    with pytest.raises(TaskFailedError, match="points behind the header"):
        run(path, dict(stored))
    assert ['{"x":"3","y":"4"}'] == run(path, stored, csv_names="x,y")


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"position": 1}, "unknown field 'position'"),
        ({"anchor": "1"}, "whole number"),
        ({"anchor": -1}, "whole number"),
        ({"anchor": True}, "whole number"),
        ({"version": "x"}, "form that headrace writes"),
        ({"format": 1}, "must be a string"),
        ({"done": 1}, "true or false"),
        ({"skip": 1}, "without the 'anchor'"),
        ({"anchor": 9, "checked": 9}, "both or neither"),
        ({"anchor": 9, "checked": 10, "checksum": 1}, "not behind 'anchor'"),
    ],
)
def test_offsets_are_vetoed(offset: SourceOffset, words: str) -> None:
    """Unknown fields and wrong types are refused with the file's name."""
    with pytest.raises(OffsetsError, match=words) as caught:
        FilesConnector().validate_offsets({}, {SourcePartition(filename="/a"): offset})

    assert "/a" in str(caught.value)


@pytest.mark.parametrize(
    "partition",
    [
        {},
        {"filename": 1},
        {"filename": "a"},
        {"filename": "/a", "from": 1},
        {"filename": "/a", "x": 1},
    ],
)
def test_partitions_are_vetoed(partition: dict[str, object]) -> None:
    """A partition is a file, or a range of one."""
    with pytest.raises(OffsetsError):
        FilesConnector().validate_offsets({}, {SourcePartition(partition): None})  # pyright: ignore[reportArgumentType]


def test_own_offsets_are_accepted(path: Path) -> None:
    """What a run stored may be stored again; a person's count or a removal, too."""
    stored = half_read(path)
    run(path, stored, stop_after=1, files_split_bytes="2")
    more: dict[SourcePartition, SourceOffset | None] = {
        SourcePartition(filename="/a"): {"recordCount": 0},
        SourcePartition({"filename": "/b", "from": 0, "to": 9}): None,
    }

    assert None is veto(FilesConnector(), {**stored, **more})
