"""Files that are replaced by longer ones and read on: ``files.changed=tail``."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files_steps import Steps
from connectors.test_files_store_selection import OBJECT, PATH, decided, details_of, stored
from headrace.connect import ConfigError, SourceOffset, SourcePartition, TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.tail import behind_line_end
from headrace.formats.chunk import Resume
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]
IN_STORE = {"files_changed": "tail", "files_compression": "none"}


def run(path: Path, stored: Stored, *, stop_after: int | None = None, **props: str) -> list[str]:
    """The values that a run with files.changed=tail commits."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    given |= {"files.changed": "tail"}
    given |= {key.replace("_", "."): each for key, each in props.items()}
    delivered = LocalRun(FilesConnector(), given, stored, stop_after=stop_after).until_idle()
    return [each.value for each in delivered]


def put(path: Path, text: str) -> None:
    """Put another file with *text* in the place of the one at *path*."""
    new = path.with_name(".new")
    new.write_text(text)
    new.rename(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A text file of two lines."""
    made = tmp_path / "a.txt"
    made.write_text("one\ntwo\n")
    return made


@pytest.mark.parametrize("stop_after", [None, 1])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_longer_file_is_read_on(path: Path, stop_after: int | None, replaced: bool) -> None:  # noqa: FBT001
    """Whether it grew or was replaced, was half read or read to its end."""
    known: Stored = {}
    sent = run(path, known, stop_after=stop_after)
    longer = "one\ntwo\nthree\nfour\n"
    (put if replaced else Path.write_text)(path, longer)

    assert longer.split() == [*sent, *run(path, known)]
    assert [] == run(path, known)
    (entry,) = known.values()
    assert (4, len(longer), True) == (entry["recordCount"], entry["size"], entry["done"])


def test_without_it_what_is_longer_is_another_file(path: Path) -> None:
    """As in a store: its inode is another one."""
    known: Stored = {}
    run(path, known)
    path.with_name(".kept").hardlink_to(path)  # so that its inode is not used again
    put(path, "one\ntwo\nthree\n")

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        run(path, known, files_changed="fail")
    assert [] == run(path, known, files_changed="ignore")
    assert ["one", "two", "three"] == run(path, known, files_changed="reread")


def test_a_file_that_was_empty_is_read_on(path: Path) -> None:
    """From its beginning; so is an object."""
    path.write_text("")
    known: Stored = {}
    assert [] == run(path, known)
    put(path, "one\n")
    assert ["one"] == run(path, known)

    empty = stored(anchor=0, size=0, recordCount=0, done=True)
    assert 1 == len(decided(replace(OBJECT, version="v2"), stored=empty, **IN_STORE)[PATH].pieces)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_end_that_comes_later_is_no_line(path: Path, end: str) -> None:
    """The last record was sent without one, because it is one without."""
    path.write_text(f"one{end}two", newline="")
    known: Stored = {}
    assert ["one", "two"] == run(path, known)
    path.write_text(f"one{end}two{end}", newline="")
    assert [] == run(path, known)
    path.write_text(f"one{end}two{end}three{end}", newline="")

    assert ["three"] == run(path, known)


def test_a_last_record_that_goes_on_fails(path: Path) -> None:
    """What was sent of it is not taken back, and no half of a record is sent."""
    path.write_text("one\ntw")
    known: Stored = {}
    run(path, known)
    path.write_text("one\ntwo\nthree\n")

    with pytest.raises(TaskFailedError, match=f"{path}: Its last record .* at byte 6"):
        run(path, known)


def test_what_does_not_begin_as_it_did_fails(path: Path) -> None:
    """Longer or not; so does what is shorter."""
    known: Stored = {}
    run(path, known)

    for text, words in (("one\nTWO\nthree\n", "replaced"), ("one\n", "shrank to 4 bytes")):
        put(path, text)
        with pytest.raises(TaskFailedError, match=words) as raised:
            run(path, known)
        assert "files.changed=tail reads on where" in str(raised.value)


def test_one_of_the_same_size_is_the_same(path: Path) -> None:
    """Nothing of it is read, and explain tells why; what differs lies between what is compared."""
    known: Stored = {}
    edge = "x" * 1100
    path.write_text(f"{edge}\none\n{edge}\n")
    run(path, known)
    path.with_name(".kept").hardlink_to(path)  # so that its inode is not used again
    put(path, f"{edge}\nONE\n{edge}\n")

    assert [] == run(path, known)
    row = Steps(path, known, files_changed="tail").explained()["a.txt"]
    assert "of the same size" in str(row.reason)


def test_csv_goes_on_under_its_header(tmp_path: Path) -> None:
    """Which is not read again."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    known: Stored = {}
    run(path, known)
    put(path, 'a,b\n1,2\n3,"x\ny"\n')

    assert ['{"a":"3","b":"x\\ny"}'] == run(path, known)


def test_a_packed_file_does_not_go_on(tmp_path: Path) -> None:
    """Its name is in the error; without a change it is read as any other. Only its folder is named."""
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\n"))
    known: Stored = {}
    assert ["one"] == run(tmp_path, known)
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))

    with pytest.raises(TaskFailedError, match=f"{path}: .*not compressed"):
        run(tmp_path, known)


@pytest.mark.parametrize("offset", [{}, {"anchor": 100, "done": True}])
def test_a_longer_object_is_read_on(offset: SourceOffset) -> None:
    """Under its new version, from where the old one was read to; the slot looks at that place."""
    longer = replace(OBJECT, version="v2", size=200)

    decision = decided(longer, stored=stored(**offset), **IN_STORE)[PATH]

    (piece,) = decision.pieces
    details = details_of(decision)
    anchor = offset.get("anchor", 9)
    assert ("v2", 200, 200) == (details.version, details.size, details.stop)
    assert (anchor, True) == ((piece.split.offset or {})["anchor"], details.tailed)
    assert 200 - int(str(anchor)) == piece.weight


def test_an_object_of_the_same_version_needs_no_look() -> None:
    """It goes on as it always does."""
    decision = decided(OBJECT, stored=stored(), **IN_STORE)[PATH]

    assert not details_of(decision).tailed


def test_an_object_of_the_same_size_is_the_same() -> None:
    """One that is shorter fails, also where less than it has was read."""
    known = stored(anchor=100, done=True)

    same = decided(replace(OBJECT, version="v2"), stored=known, **IN_STORE)[PATH]

    assert not same.pieces
    assert "of the same size" in str(same.told)
    for offset in (known, stored()):
        with pytest.raises(TaskFailedError, match=f"{PATH}: The object shrank to 99 bytes"):
            decided(replace(OBJECT, version="v2", size=99), stored=offset, **IN_STORE)


@pytest.mark.parametrize("key", ["a.avro", "a.parquet"])
def test_an_object_of_another_form_does_not_go_on(key: str) -> None:
    """With the file's name, where the format is told by it."""
    (known,) = stored(anchor=100, done=True, format="").values()
    at = {SourcePartition(filename=f"s3://b/{key}"): known}

    with pytest.raises(TaskFailedError, match=f"s3://b/{key}: .*has to be of JSON lines"):
        decided(replace(OBJECT, key=key, version="v2", size=200), stored=at, **IN_STORE)


def test_an_object_in_ranges_does_not_go_on() -> None:
    """Left from when files.split.bytes was set."""
    (known,) = stored(anchor=50).values()
    at = {**stored(), SourcePartition({"filename": PATH, "from": 9, "to": 50}): known}

    with pytest.raises(TaskFailedError, match="without ranges"):
        decided(replace(OBJECT, version="v2", size=200), stored=at, **IN_STORE)


@pytest.mark.parametrize(
    ("text", "anchor", "expected"),
    [
        (b"a\nb", 0, 0),
        (b"a\nb", 2, 2),
        (b"a\n", 2, 2),
        (b"a", 1, 1),
        (b"a\nb", 1, 2),
        (b"a\r\nb", 1, 3),
        (b"a\r", 1, 2),
        (b"a\r\nb", 2, 3),
        (b"ab", 1, None),
        (b"a\rb", 1, None),
        (b"a\r\r\n", 2, None),
        (b"a\rb", 2, None),
    ],
)
def test_where_reading_goes_on(text: bytes, anchor: int, expected: int | None) -> None:
    """Behind the line end of the last record; ``None`` where that goes on. One byte is read at a time."""

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(1, size or 0))

    raw, resume = Slow(text), Resume(anchor=anchor, skip=0, record_count=1)

    if expected is None:
        with pytest.raises(TaskFailedError, match="/a: "):
            behind_line_end(raw, resume, "/a")
        assert raw.closed
    else:
        assert replace(resume, anchor=expected) == behind_line_end(raw, resume, "/a")
        assert 0 == raw.tell()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"files.format": "avro"}, "tail needs lines or rows"),
        ({"files.format": "parquet"}, "tail needs lines or rows"),
        ({"files.format": "bytes"}, "tail needs lines or rows"),
        ({"files.compression": "gzip"}, "tail needs files as they are"),
        ({"files.path": "s3://b/"}, "files.compression=none"),
        ({"files.split.bytes": "9"}, "several ends"),
        ({"files.after.commit": "delete"}, "files.after.commit=keep"),
        ({"files.headers": "last"}, "no record is the last"),
    ],
)
def test_what_cannot_go_on_is_refused(more: dict[str, str], words: str) -> None:
    """Each with what it needs."""
    with pytest.raises(ConfigError, match=words):
        FilesConfig.parse({"files.path": "/x", "topic": "t", "files.changed": "tail", **more})


def test_of_a_file_that_only_grew_tail_is_named_first() -> None:
    """And not of one that tail would refuse; an object of a store is called one."""
    known, plain = stored(anchor=100, done=True), {"files_compression": "none"}

    def advice(size: int, **more: str) -> str:
        with pytest.raises(TaskFailedError) as caught:
            decided(replace(OBJECT, version="v2", size=size), stored=known, **more)
        return str(caught.value)

    longer = advice(101, **plain)
    assert longer.index("files.changed=tail") < longer.index("files.changed=reread")
    assert "Put the object back" in longer
    for other in (advice(99, **plain), advice(101), advice(101, files_split_bytes="9", **plain)):
        assert "tail" not in other
    assert "file" not in advice(99, **plain).replace("files.changed", "")
