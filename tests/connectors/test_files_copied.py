"""Files that were read to their end, and lie under their names again with another inode: restored, synchronised, moved."""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connect import SourceOffset, SourcePartition, TaskFailedError
from headrace.connect.connector import PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local import file_opener, prefix_check
from headrace.connectors.files.prefix_fingerprint import DIGEST
from headrace.testing.task_runs import LocalRun, StoredOffsets

Stored = dict[SourcePartition, SourceOffset]
NUMBERS = range(1000, 2000)


def json_lines(changed: int | None = None) -> bytes:
    """A thousand records, of which the one that is *changed* has other digits and as many."""
    return b"".join(b'{"n":%d}\n' % (9999 if n == changed else n) for n in NUMBERS)


def csv(changed: int | None = None) -> bytes:
    """As :func:`json_lines`."""
    return b"n\n" + b"".join(b"%d\n" % (9999 if n == changed else n) for n in NUMBERS)


def packed(changed: int | None = None) -> bytes:
    """As :func:`json_lines`, in a gzip that packs nothing, so that it stays as long."""
    return gzip.compress(json_lines(changed), 0, mtime=0)


def parquet(changed: int | None = None) -> bytes:
    """As :func:`json_lines`, without statistics in the footer."""
    table = pa.table({"n": [9999 if n == changed else n for n in NUMBERS]})
    target = io.BytesIO()
    pq.write_table(table, target, compression="none", use_dictionary=False, write_statistics=False)
    return target.getvalue()


def avro(changed: int | None = None) -> bytes:
    """As :func:`json_lines`; each number takes two bytes."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    target = io.BytesIO()
    found = [{"n": 7999 if n == changed else n} for n in NUMBERS]
    fastavro.writer(target, schema, found, sync_marker=b"0123456789abcdef")
    return target.getvalue()


KINDS = {
    "a.jsonl": json_lines,
    "a.csv": csv,
    "a.jsonl.gz": packed,
    "a.parquet": parquet,
    "a.avro": avro,
    "a.bin": json_lines,
}
Made = Callable[..., bytes]
every_kind = pytest.mark.parametrize(("name", "made"), KINDS.items(), ids=KINDS)


def props(path: Path, **more: str) -> dict[str, str]:
    """How files at *path* are read."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    given |= {"files.format": "bytes"} if path.suffix == ".bin" else {}
    return given | {key.replace("_", "."): each for key, each in more.items()}


def run(
    path: Path,
    stored: Stored,
    *,
    stop_after: int | None = None,
    wait: Callable[[float], None] | None = None,
    **more: str,
) -> int:
    """How many records a run reads."""
    played = LocalRun(
        FilesConnector(), props(path, **more), stored, stop_after=stop_after, wait=wait
    )
    return len(list(played.until_idle()))


def restored(path: Path, content: bytes | None = None) -> None:
    """Another file under the name, as old to the nanosecond, with *content* or the same."""
    times = path.stat()
    path.with_name(".kept").unlink(missing_ok=True)
    path.with_name(".kept").hardlink_to(path)  # so that its inode is not used again
    other = path.with_name(".other")
    if content is None:
        shutil.copyfile(path, other)
    else:
        other.write_bytes(content)
        assert times.st_size == len(content)
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.rename(path)


@every_kind
@pytest.mark.parametrize("changed", ["fail", "reread", "ignore"])
def test_a_copy_of_what_was_read_is_not_read_again(
    tmp_path: Path, name: str, made: Made, changed: str
) -> None:
    """Its entry speaks of the new inode from then on, so that its bytes are compared once."""
    path, stored = tmp_path / name, Stored()
    path.write_bytes(made())
    assert run(path, stored) > 0
    (before,) = stored.values()
    restored(path)

    assert 0 == run(path, stored, files_changed=changed)

    (after,) = stored.values()
    assert {**before, "version": after["version"]} == after
    assert before["version"] != after["version"]


@every_kind
def test_a_change_between_the_edges_is_noticed(tmp_path: Path, name: str, made: Made) -> None:
    """Of the same length, age, first and last kibibyte: it is another file, and nothing of it is taken for read."""
    path, stored = tmp_path / name, Stored()
    path.write_bytes(made())
    count = run(path, stored)
    restored(path, made(changed=1500))

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        run(path, stored)
    assert count == run(path, stored, files_changed="reread")


def test_what_comes_back_changed_is_not_taken_away_unread(tmp_path: Path) -> None:
    """It has the name, the size and the edges of a file that was still to be deleted."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    assert 1000 == run(path, stored, stop_after=1000, files_after_commit="delete")
    assert path.exists()
    restored(path, json_lines(changed=1500))

    assert 1000 == run(path, stored, files_after_commit="delete")


def test_a_copy_is_left_where_it_is(tmp_path: Path) -> None:
    """What is done to files after their commit was not asked for when it was read."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    run(path, stored)
    restored(path)

    assert 0 == run(path, stored, files_after_commit="delete")

    assert path.exists()


def test_a_copy_that_may_be_being_written_waits(tmp_path: Path) -> None:
    """No offset says of it that it was read before it is as old as any other has to be."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    run(path, stored)
    before = dict(stored)
    restored(path)

    assert 0 == run(path, stored, files_min_age_ms="60000")

    assert before == stored


@pytest.mark.parametrize("stop_after", [1, 499, 999, 1000])
def test_the_copy_of_a_file_that_was_read_in_pieces_is_known(
    tmp_path: Path, stop_after: int
) -> None:
    """Also when it has grown since, was too young to be done, and is restored twice."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    first = run(
        path, stored, stop_after=stop_after, files_min_age_ms="60000", files_batch_max_bytes="4096"
    )
    assert 1000 == first + run(
        path, stored, files_min_age_ms="60000", files_batch_max_bytes="4096"
    ) + run(path, stored)
    with path.open("ab") as file:
        file.write(b'{"grown":1}\n\n')
    assert 1 == run(path, stored)

    for _ in range(2):
        restored(path)
        assert 0 == run(path, stored)
    restored(path, (json_lines(changed=1500) + b'{"grown":1}\n\n'))
    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        run(path, stored)


def test_without_a_digest_the_inode_decides(tmp_path: Path) -> None:
    """As in offsets of earlier versions and of ranges: no one knows what lay between the edges."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    run(path, stored)
    ((partition, entry),) = stored.items()
    stored[partition] = {key: value for key, value in entry.items() if key != DIGEST}
    restored(path)

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        run(path, stored)


def touched(path: Path) -> None:
    """As ``chown`` does it: another time of change, by the system's own clock, and nothing else."""
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:
        path.chmod(0o644)


@every_kind
@pytest.mark.parametrize("how", ["touched", "vanished"])
def test_what_is_not_known_yet_is_not_another_file(
    tmp_path: Path, *, monkeypatch: pytest.MonkeyPatch, name: str, made: Made, how: str
) -> None:
    """A file that is touched or away while it is compared is compared again, in the next round."""
    path, stored, away = tmp_path / name, Stored(), tmp_path / ".away"
    path.write_bytes(made())
    run(path, stored)
    (before,) = stored.values()
    restored(path)
    opened = list[str]()

    def disturbed(given: str) -> io.FileIO:
        if opened:
            return io.FileIO(given)
        opened.append(given)
        if how == "vanished":
            path.rename(away)
            return io.FileIO(given)
        raw = io.FileIO(given)
        touched(path)
        return raw

    monkeypatch.setattr(prefix_check, "FileIO", disturbed)
    assert 0 == run(path, stored)
    assert [before] == list(stored.values())
    if how == "vanished":
        away.rename(path)

    assert 0 == run(path, stored)
    (after,) = stored.values()
    assert {**before, "version": after["version"]} == after
    assert before["version"] != after["version"]


@every_kind
@pytest.mark.parametrize("changed", [None, 1500])
def test_a_round_compares_so_many_bytes(
    tmp_path: Path,
    *,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    made: Made,
    changed: int | None,
) -> None:
    """The rest is left for the next ones, neither sent nor judged; one line of the log says so."""
    path, stored = tmp_path / name, Stored()
    path.write_bytes(made())
    run(path, stored)
    (before,) = stored.values()
    restored(path, made(changed=changed))
    size, seen = path.stat().st_size, list[SourceOffset]()
    monkeypatch.setattr(prefix_check, "_MOST_COMPARED", size // 3)

    def wait(_: float) -> None:
        seen.extend(stored.values())

    if changed is None:
        assert 0 == run(path, stored, wait=wait)
        assert [before] != list(stored.values())
    else:
        with pytest.raises(TaskFailedError, match="was replaced by another one"):
            run(path, stored, wait=wait)

    assert [before] * len(seen) == seen
    assert len(seen) in {2, 3}
    assert 1 == sum("under other inodes" in each for each in caplog.messages)


def test_what_is_being_compared_is_not_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the name of a file that was to be deleted; when it is known to be that one, it is."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    assert 1000 == run(path, stored, stop_after=1000, files_after_commit="delete")
    (before,) = stored.values()
    restored(path)
    monkeypatch.setattr(prefix_check, "_MOST_COMPARED", path.stat().st_size // 3)
    connector = FilesConnector()
    connector.start(props(path, files_after_commit="delete"))
    for _ in range(2):
        plan = connector.plan(PlanRequest(slots=1, offsets=StoredOffsets(stored)))
        assert (False, {}) == (plan.has_work(), plan.offsets)
        assert plan.ask_again_after is not None
    (told,) = connector.explain(PlanRequest(slots=1, offsets=StoredOffsets(stored)))
    connector.stop()

    assert told.reason is not None
    assert "It is being compared" in told.reason
    assert [before] == list(stored.values())
    assert path.exists()


def test_a_young_file_of_that_length_waits(tmp_path: Path) -> None:
    """A restore may make it as long as it will be before its bytes come."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    run(path, stored)
    before = dict(stored)
    restored(path, json_lines(changed=1500))

    assert 0 == run(path, stored, files_min_age_ms="60000")
    assert before == stored


def test_a_followed_name_with_another_file_of_that_length(tmp_path: Path) -> None:
    """It has the edges of the one that was read, and is not taken for it."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    run(path, stored, files_follow="true")
    restored(path, json_lines(changed=1500))

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        run(path, stored, files_follow="true")
    assert 1000 == run(path, stored, files_follow="true", files_changed="reread")


def test_what_was_written_over_before_its_digest_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes need not be those that were sent, so that a copy of them is not taken for read."""
    path, stored = tmp_path / "a.jsonl.gz", Stored()
    path.write_bytes(packed())
    digest = file_opener.packed_digest

    def written_over(given: str, *, version: str, size: int, modified_ms: int) -> int | None:
        with path.open("r+b") as file:
            file.write(packed(changed=1500))
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
        return digest(given, version=version, size=size, modified_ms=modified_ms)

    monkeypatch.setattr(file_opener, "packed_digest", written_over)
    assert 1000 == run(path, stored)

    (entry,) = stored.values()
    assert DIGEST not in entry


def test_an_answer_that_was_not_written_is_given_again(tmp_path: Path) -> None:
    """A plan whose transaction was aborted has changed nothing."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(json_lines())
    run(path, stored)
    restored(path)
    connector = FilesConnector()
    connector.start(props(path))

    for _ in range(2):
        plan = connector.plan(PlanRequest(slots=1, offsets=StoredOffsets(stored)))
        assert list(stored) == list(plan.offsets)
    connector.stop()
