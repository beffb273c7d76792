"""The file stream does what Kafka Connect's does, and counts bytes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connect import (
    ExactlyOnceSupport,
    OffsetsError,
    RecordError,
    SourceOffset,
    SourcePartition,
    TaskFailedError,
)
from headrace.connect.schema import STRING
from headrace.connectors.file_stream import FileStreamSourceConnector, FileStreamSourceTask
from headrace.connectors.line_tail import line_ahead, open_tail
from headrace.formats.streams import PlainStream
from headrace.testing.task_runs import LocalContext, LocalRun, StoredOffsets
from project.sampling import drawn

Stored = dict[SourcePartition, SourceOffset]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file's path."""
    return tmp_path / "a.txt"


def task(path: Path | None, stored: Stored, **props: str) -> FileStreamSourceTask:
    """A started task that does not wait."""
    made = FileStreamSourceTask()
    made.initialize(LocalContext(offsets=StoredOffsets(stored), asked_to_stop=True))
    named = {key.replace("_", "."): value for key, value in props.items()}
    made.start({"topic": "t", **({"file": str(path)} if path else {}), **named})
    return made


def run(path: Path, stored: Stored, *, stop_after: int | None = None, **props: str) -> list[str]:
    """The lines that a run commits."""
    named = {key.replace("_", "."): value for key, value in props.items()}
    local = LocalRun(
        FileStreamSourceConnector(),
        {"file": str(path), "topic": "t", **named},
        stored,
        stop_after=stop_after,
    )
    # Ends as soon as there is nothing, instead of a second later.
    local._started = lambda _config, _context: task(path, dict(stored), **named)  # type: ignore[method-assign, assignment]
    return [each.value for each in local.until_idle()]


def test_what_was_read_of_standard_input_cannot_be_read_again(path: Path) -> None:
    """So its task stays in its slot while nothing comes; of a file it need not."""
    path.touch()

    assert (False, True) == (
        task(None, {}).resumes_cheaply(),
        task(path, {}).resumes_cheaply(),
    )


def at(path: Path, position: int) -> Stored:
    """The store of a task that has read so far."""
    return {SourcePartition(filename=str(path)): {"position": position}}


def test_lines_end_as_in_java(path: Path) -> None:
    """At a line feed, a return, or both; positions are bytes behind the line end."""
    path.write_bytes("a\nü☃\r\nb\r\rc\r\n".encode())
    made = task(path, {})

    (batch,) = made.poll() or ()
    made.stop()

    assert ["a", "ü☃", "b", "", "c"] == batch.values.to_pylist()
    assert [2, 9, 11, 12, 15] == [(batch.offset_at(row) or {})["position"] for row in range(5)]
    assert STRING == batch.value_schema
    assert SourcePartition(filename=str(path)) == batch.source_partition
    assert batch.keys is None
    assert isinstance(batch.timestamps, int)


@settings(max_examples=drawn(60), deadline=None)
@given(text=st.text("ab\n\rü", max_size=30), size=st.none() | st.integers(1, 3))
def test_resumes_behind_every_line(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int | None
) -> None:
    """Wherever it stops, each complete line comes once."""
    path = tmp_path_factory.mktemp("tail") / "a"
    path.write_bytes(text.encode())
    props = {"batch_size": str(size)} if size else {}
    lines = text.replace("\r\n", "\n")
    # A return at the very end may be the first half of a line end.
    lines = (lines[:-1] + "x" if lines.endswith("\r") else lines).replace("\r", "\n")
    expected = lines.split("\n")[:-1]

    for cut in range(len(expected) + 1):
        stored: Stored = {}
        first = run(path, stored, stop_after=cut, **props) if cut else []
        assert expected == first + run(path, stored, **props)


def test_a_last_line_waits_for_its_end(path: Path) -> None:
    """As in Kafka Connect, and the rest of it is found by the same task."""
    path.write_text("a\nb")
    made = task(path, {})
    (first,) = made.poll() or ()
    assert made.poll() is None
    with path.open("a") as file:
        file.write("c\n")

    (second,) = made.poll() or ()
    made.stop()

    assert [["a"], ["bc"]] == [first.values.to_pylist(), second.values.to_pylist()]


def test_a_file_that_does_not_exist_yet_is_waited_for(path: Path) -> None:
    """Nothing is not an error here; the same task reads the file when it is there."""
    made = task(path, {})
    assert made.poll() is None
    path.write_text("a\n")

    (batch,) = made.poll() or ()
    made.stop()

    assert ["a"] == batch.values.to_pylist()


def test_the_batch_size_is_kept_when_it_is_set(path: Path) -> None:
    """A poll returns no more records than the user said; without it, a block of lines."""
    path.write_text("a\n" * 5000)
    made, free = task(path, {}, batch_size="2000"), task(path, {})

    assert [2000, 2000, 1000] == [len((made.poll() or ())[0]) for _ in range(3)]
    assert [5000] == [len((free.poll() or ())[0])]
    made.stop()
    free.stop()


def test_bytes_that_are_not_text_are_replaced(path: Path) -> None:
    """As Java's reader does."""
    path.write_bytes(b"ok\n\xff!\n")

    assert ["ok", "\ufffd!"] == run(path, {})


@pytest.mark.parametrize(
    ("wrong", "marks"),
    [
        (b"\xed\xa0\x80", 1),
        (b"\xed\xa0\x80\xed\xb0\x80", 2),
        (b"\xed\xbf", 1),
        (b"\xed\xa0\xed\xa0\x80", 2),
        (b"\xe2\xed\xa0\x80", 2),
        (b"\xf0\x9f\x9a", 1),
        (b"\xc0\xaf", 2),
        (b"\xe0\x80\x80", 3),
        (b"\xf4\x90\x80\x80", 4),
    ],
)
def test_as_many_marks_stand_for_wrong_bytes_as_in_java(
    path: Path, wrong: bytes, marks: int
) -> None:
    """Half a surrogate pair is one wrong character, whatever is left of it."""
    path.write_bytes(b"a" + wrong + b"z\n")

    assert ["a" + marks * "\ufffd" + "z"] == run(path, {})


def test_a_shrunk_file_is_an_error(path: Path) -> None:
    """Not silence: the message has both numbers."""
    path.write_text("a\n")

    with pytest.raises(TaskFailedError, match="has 2 bytes, but its first 9 have been read"):
        run(path, at(path, 9))


def test_a_file_cut_while_it_is_followed_is_an_error(path: Path) -> None:
    """The open file is watched, too."""
    path.write_text("a\nb\n")
    made = task(path, {})
    made.poll()
    path.write_text("c\n")

    with pytest.raises(TaskFailedError, match="has 2 bytes"):
        made.poll()
    made.stop()


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    """What cannot be read is told."""
    with pytest.raises(TaskFailedError, match="cannot be read: Is a directory"):
        run(tmp_path, {})


def test_a_long_line_is_an_error(path: Path) -> None:
    """With file and place."""
    path.write_text("a\n" + "x" * 50 + "\nb\n")

    with pytest.raises(RecordError, match=r"a\.txt, byte 2 \(record 2\): .* longer than 9 bytes"):
        run(path, {}, file_max_line_bytes="9")


@pytest.mark.parametrize(
    ("where", "expected"), [("continue", ["", "b"]), ("line-start", ["ü☃", "b"])]
)
def test_a_position_inside_a_line_is_told(
    path: Path, caplog: pytest.LogCaptureFixture, where: str, expected: list[str]
) -> None:
    """Java counts characters: its position 7 lies on a line feed here."""
    path.write_bytes("a\nü☃\nb\n".encode())

    with caplog.at_level(logging.WARNING):
        assert expected == run(path, at(path, 7), file_position_inside_line=where)
    assert "position 7 lies inside a line that begins at byte 2" in caplog.text


def test_standard_input_has_no_offsets(tmp_path: Path) -> None:
    """A pipe is read to its end, an unterminated last line included."""
    name = tmp_path / "pipe"
    os.mkfifo(name)
    hold = os.open(name, os.O_RDWR)
    tail = open_tail(str(name), position=0, to_line_start=False, max_rows=None, max_line_bytes=99)
    assert tail is not None
    assert tail.next_lines() is None
    os.write(hold, b"a\nb")
    assert ["a"] == (tail.next_lines() or ())[0].to_pylist()
    os.close(hold)
    assert ["b"] == (tail.next_lines() or ())[0].to_pylist()
    assert tail.next_lines() is None
    tail.close()


def test_exactly_once_needs_a_file() -> None:
    """Standard input cannot be read again."""
    connector = FileStreamSourceConnector()

    assert ExactlyOnceSupport.SUPPORTED == connector.exactly_once_support(
        {"topic": "t", "file": "/a"}
    )
    assert ExactlyOnceSupport.UNSUPPORTED == connector.exactly_once_support({"topic": "t"})


@pytest.mark.parametrize(
    ("content", "position", "expected"),
    [(None, 0, None), (b"", 0, False), (b"a", 0, False), (b"a\n", 0, True), (b"a\n", 2, False),
     (b"a\n", 3, True), (b"a\r", 0, False), (b"a\rb", 0, True),
     (b"x" * 70_000, 0, False), (b"x" * 70_000 + b"\n", 0, True), (b"x" * 65_535 + b"\r", 0, False),
     (b"x" * 65_535 + b"\ry", 0, True), (b"x" * 200_000, 0, False), (b"x" * 200_001, 0, True)],
)  # fmt: skip
def test_the_probe_sees_whole_lines(
    path: Path,
    content: bytes | None,
    position: int,
    expected: bool | None,  # noqa: FBT001
) -> None:
    """Work is a complete line, or something to complain about, such as a line that is too long."""
    if content is not None:
        path.write_bytes(content)

    assert expected is line_ahead(str(path), position, max_line_bytes=200_000)


@pytest.mark.parametrize(
    ("position", "words"), [(9, "Its first 9 bytes have been read"), (0, "does not exist yet")]
)
def test_a_file_that_is_not_there_is_told_once_while_it_is_away(
    path: Path, caplog: pytest.LogCaptureFixture, position: int, words: str
) -> None:
    """It is waited for, as in Kafka Connect, but not in silence."""
    connector = FileStreamSourceConnector()
    connector.start({"file": str(path), "topic": "t"})
    offsets = StoredOffsets(at(path, position))

    def told() -> int:
        return sum(words in each.message and str(path) in each.message for each in caplog.records)

    with caplog.at_level(logging.WARNING):
        assert [False, False] == [connector.has_work(offsets), connector.has_work(offsets)]
        assert 1 == told()
        path.write_text("12345678\nx\n")
        assert connector.has_work(offsets)
        path.unlink()
        assert connector.has_work(offsets) is False
        assert 2 == told()


def test_a_disk_that_fails_is_told_with_file_and_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a file that could be opened."""
    path.write_text("a\n")
    made = task(path, {})
    made.poll()

    def fail(_: PlainStream, __: memoryview) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(PlainStream, "read_into", fail)
    with pytest.raises(TaskFailedError, match=r"a\.txt, byte 2: .*Input/output error"):
        made.poll()
    made.stop()


def test_a_file_that_cannot_be_looked_at_while_it_is_followed_is_an_error(path: Path) -> None:
    """Only one that is gone is waited for."""
    path.write_text("a\n")
    made = task(path, {})
    made.poll()
    path.unlink()
    assert made.poll() is None
    path.symlink_to(path.name)

    with pytest.raises(TaskFailedError, match=r"a\.txt: The file cannot be read: Too many"):
        made.poll()
    made.stop()


@pytest.mark.parametrize(
    ("partition", "offset", "words"),
    [
        (
            {"filename": "/a"},
            {},
            "Offset objects should either be null or contain the key 'position'",
        ),
        ({"filename": "/a"}, {"position": "1"}, "is expected to be a Long value"),
        ({"filename": "/a"}, {"position": -1}, "should be a non-negative value"),
        ({}, {"position": 1}, "Partition objects should contain the key 'filename'"),
    ],
)
def test_offsets_are_vetoed_in_connects_words(
    partition: dict[str, str], offset: SourceOffset, words: str
) -> None:
    """The same sentences as Kafka Connect's."""
    connector = FileStreamSourceConnector()

    with pytest.raises(OffsetsError, match=words):
        connector.alter_offsets({"file": "/a"}, {SourcePartition(partition): offset})
    with pytest.raises(OffsetsError, match="stdin is used for input"):
        connector.alter_offsets({}, {SourcePartition(partition): offset})


def test_lag_is_what_is_behind_the_position(path: Path) -> None:
    """In bytes, never less than none; nothing is said of other files, and of one that is gone."""
    path.write_bytes(b"one\ntwo\n")
    props = {"file": str(path), "topic": "t"}
    tell = FileStreamSourceConnector().lag

    assert {SourcePartition(filename=str(path)): 5} == tell(props, at(path, 3))
    assert [0] == list(tell(props, at(path, 30)).values())
    assert {} == tell(props, at(path.with_name("other"), 3))
    assert {} == tell({"topic": "t"}, {})
    path.unlink()
    assert {} == tell(props, at(path, 3))


def test_good_offsets_and_removals_are_accepted() -> None:
    """Nothing has to happen outside."""
    offsets = {
        SourcePartition(filename="/a"): {"position": 3},
        SourcePartition(filename="/b"): None,
    }

    assert FileStreamSourceConnector().alter_offsets({"file": "/a"}, offsets)
