"""Bad records of files through the task loop: what is sent and what is passed over are all there is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from task.local_loop import Rounds

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
FILES = {
    "a.jsonl": b'{"n":1}\nbad one\n{"n":2}\n\nbad two\nbad three\n{"n":3}\n',
    "b.jsonl": b"bad four\n",
    "c.jsonl": b'{"n":4}\nbad five',
    "d.jsonl.gz": gzip.compress(b'bad six\n{"n":5}\nbad seven\n'),
    "e.csv": b"n\n6\n7,bad\n8\n9,bad\n",
    "f.jsonl": b"",
}
GOOD = [b'{"n":%d}' % number for number in range(1, 6)] + [b'{"n":"6"}', b'{"n":"8"}']
BAD = [b"bad " + word for word in (b"one", b"two", b"three", b"four", b"five", b"six", b"seven")]
BAD += [b"7,bad", b"9,bad"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files with bad records in their middle and at their ends."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def rounds(folder: Path, errors: ErrorPolicy = DEAD, **more: str) -> Rounds:
    """Rounds of the connector over *folder*, in batches of two."""
    props = {
        "name": "c",
        "topic": "t",
        "files.path": str(folder),
        "files.min.age.ms": "0",
        "files.batch.max.rows": "2",
    }
    return Rounds(
        FilesConnector, props | {key.replace("_", "."): each for key, each in more.items()}, errors
    )


def test_records_and_letters_are_all_there_is(folder: Path) -> None:
    """Each once, in the order of its file; all files are done, and nothing is read again."""
    played = rounds(folder)

    played.play()
    played.play()

    assert sorted(GOOD) == sorted(played.values("t"))
    assert sorted(BAD) == sorted(played.values("dead"))
    assert len(BAD) == played.tolerated
    assert all(offset.get("done") for offset in played.stored.values())
    counts = {
        Path(str(partition["filename"])).name: offset["recordCount"]
        for partition, offset in played.stored.items()
    }
    assert {
        "a.jsonl": 6,
        "b.jsonl": 1,
        "c.jsonl": 2,
        "d.jsonl.gz": 3,
        "e.csv": 4,
        "f.jsonl": 0,
    } == counts | {"f.jsonl": counts.get("f.jsonl", 0)}


@pytest.mark.parametrize("content", [b"bad\n", b"1\nbad", b"bad\n1\n"])
@pytest.mark.parametrize("boundary", [BoundaryKind.POLL, BoundaryKind.INTERVAL])
def test_a_file_is_done_with_its_last_record_whatever_that_is(
    tmp_path: Path, content: bytes, boundary: BoundaryKind
) -> None:
    """A packed one would be unpacked once more otherwise."""
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content))
    played = rounds(tmp_path)
    played.boundary = boundary

    played.play_one()

    assert [True] == [offset.get("done") for offset in played.stored.values()]


@pytest.mark.parametrize("killed_at", range(1, 16))
def test_wherever_it_is_killed_nothing_is_lost_or_twice(folder: Path, killed_at: int) -> None:
    """Between any two polls, behind a record or behind a letter."""
    played = rounds(folder)

    played.play(killed_at=killed_at)
    assert len(played.records) < len(GOOD) + len(BAD)
    played.play()

    assert sorted(GOOD) == sorted(played.values("t"))
    assert sorted(BAD) == sorted(played.values("dead"))


def test_without_a_topic_the_rest_of_the_file_is_read(folder: Path) -> None:
    """What was skipped is counted."""
    played = rounds(folder, ErrorPolicy(tolerate=True))

    played.play()

    assert sorted(GOOD) == sorted(played.values("t"))
    assert ([], len(BAD)) == (played.values("dead"), played.tolerated)


def test_a_letter_says_from_where_it_is(tmp_path: Path) -> None:
    """Topic, file, position, source partition, and the offset behind it."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\nbad one\n')
    played = rounds(tmp_path)

    played.play()

    found = {key: (value or b"").decode() for key, value in played.headers[-1]}
    told = {key.removeprefix("__connect.errors."): value for key, value in found.items()}
    assert ("t", str(path), "byte 8 (record 2)") == (
        told["topic"],
        told["source.object"],
        told["source.position"],
    )
    assert {"filename": str(path)} == json.loads(told["source.partition"])
    offset = json.loads(told["source.offset"])
    assert (16, 2, 0) == (offset["anchor"], offset["recordCount"], offset["skip"])
    assert 16 == offset["checked"], "it proves what was read, as every offset does"


def test_a_line_that_is_too_long_goes_by_reference(tmp_path: Path) -> None:
    """With the version of the file that it was in."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"2" * 20000 + b"\n3\n")
    played = rounds(tmp_path, files_max_line_bytes="4096", files_batch_max_bytes="4096")

    played.play()

    assert ([b"1", b"3"], [None]) == (played.values("t"), played.values("dead"))
    (headers,) = [dict(each) for each in played.headers if each]
    reference = json.loads(headers["__connect.errors.source.reference"] or b"")
    assert (str(path), 2, 20003) == (reference["object"], reference["from"], reference["to"])
    ((_, offset),) = played.stored.items()
    assert offset["version"] == reference["version"]


def test_ranges_of_a_file_pass_over_their_own_lines_only(tmp_path: Path) -> None:
    """A bad line on the border of two ranges is one letter."""
    lines = [b'{"n":%d}' % n if n % 3 else b"bad %d" % n for n in range(200)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    played = rounds(tmp_path, files_split_bytes="97")

    played.play()

    assert sorted(line for line in lines if line.startswith(b"{")) == sorted(played.values("t"))
    assert sorted(line for line in lines if line.startswith(b"b")) == sorted(played.values("dead"))
