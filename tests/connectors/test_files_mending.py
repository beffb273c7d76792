"""What was wrong with a file is put right, and reading goes on: nothing twice, nothing left out."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect import ConnectError, SourceOffset, SourcePartition, TaskFailedError
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local import prefix_check
from headrace.connectors.files.local.fingerprinting_stream import FingerprintingStream, _Kept
from headrace.connectors.files.prefix_fingerprint import fingerprint_from
from headrace.formats.streams import PlainStream
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]
Write = Callable[[Path, bytes], None]


def in_place(path: Path, content: bytes) -> None:
    """As ``>`` in a shell does."""
    path.write_bytes(content)


def by_renaming(path: Path, content: bytes) -> None:
    """As ``sed -i`` and most editors do: another inode."""
    other = path.with_name(".other")
    other.write_bytes(content)
    other.rename(path)


def local_run(path: Path, stored: Stored, **props: str) -> LocalRun:
    """A run over *path*."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    given |= {key.replace("_", "."): each for key, each in props.items()}
    return LocalRun(FilesConnector(), given, stored)


def values(path: Path, stored: Stored, **props: str) -> list[str]:
    """The values that a run commits."""
    return [each.value for each in local_run(path, stored, **props).until_idle()]


def failing(path: Path, stored: Stored, **props: str) -> list[str]:
    """The values that a run commits until it fails."""
    run = local_run(path, stored, **props)
    with pytest.raises(ConnectError):
        run.until_idle()
    return [each.value for each in run.delivered]


def lines(first: int, last: int) -> list[str]:
    """JSON lines."""
    return [f'{{"n":{number}}}' for number in range(first, last)]


def text(*parts: list[str]) -> bytes:
    """Lines as a file holds them."""
    return "".join(f"{line}\n" for part in parts for line in part).encode()


@pytest.mark.parametrize("write", [in_place, by_renaming])
@pytest.mark.parametrize("mended", [[], ["1"], ['{"mended": "and much longer"}']])
@pytest.mark.parametrize("before", [1, 500])
@pytest.mark.parametrize("follow", ["true", "false"])
def test_a_bad_line_can_be_mended(  # noqa: PLR0917
    tmp_path: Path, write: Write, mended: list[str], before: int, follow: str
) -> None:
    """Shorter, longer or removed; near the beginning or far behind it; with whatever editor."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(text(lines(0, before), ["{bad"], lines(before, before + 5)))
    assert lines(0, before) == failing(path, stored, files_follow=follow)

    write(path, text(lines(0, before), mended, lines(before, before + 5)))

    assert mended + lines(before, before + 5) == values(path, stored, files_follow=follow)
    assert [] == values(path, stored, files_follow=follow)


@pytest.mark.parametrize("mended", [[], ["{}"]])
def test_a_bad_line_at_the_end_of_a_followed_file_can_be_mended(
    tmp_path: Path, mended: list[str]
) -> None:
    """Also when all before it had been read to its end, and the line is taken out again."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(text(lines(0, 3)))
    assert lines(0, 3) == values(path, stored, files_follow="true")
    path.with_name(".kept").hardlink_to(path)  # so that its inode is not used again
    by_renaming(path, text(lines(0, 3), ["{bad"]))
    assert [] == failing(path, stored, files_follow="true")

    by_renaming(path, text(lines(0, 3), mended))

    assert mended == values(path, stored, files_follow="true")


@pytest.mark.parametrize("changed", ["fail", "reread", "ignore"])
def test_a_truncated_packed_file_can_be_replaced_by_the_whole_one(
    tmp_path: Path, changed: str
) -> None:
    """Packed with another level even, so that no packed byte is the same."""
    path, stored = tmp_path / "a.jsonl.gz", Stored()
    everything = text(lines(0, 20_000))
    path.write_bytes(gzip.compress(everything, 1)[:20_000])
    sent = failing(path, stored)
    assert 100 < len(sent) < 20_000

    by_renaming(path, gzip.compress(everything, 9))

    assert lines(len(sent), 20_000) == values(path, stored, files_changed=changed)


def test_a_bad_line_in_a_packed_file_can_be_mended(tmp_path: Path) -> None:
    """A shorter line behind what was sent, and a smaller file."""
    path, stored = tmp_path / "a.jsonl.gz", Stored()
    path.write_bytes(gzip.compress(text(lines(0, 500), ["{bad" + "x" * 99], lines(500, 505))))
    assert lines(0, 500) == failing(path, stored)

    by_renaming(path, gzip.compress(text(lines(0, 500), ["{}"], lines(500, 505))))

    assert ["{}", *lines(500, 505)] == values(path, stored)


@pytest.mark.parametrize("write", [in_place, by_renaming])
@pytest.mark.parametrize("content", [lines(7, 900), lines(0, 400)])
def test_a_packed_file_with_other_content_is_replaced(
    tmp_path: Path, write: Write, content: list[str]
) -> None:
    """Told by the unpacked bytes before the place; read again if that is wanted, or left alone."""
    path, stored = tmp_path / "a.jsonl.gz", Stored()
    path.write_bytes(gzip.compress(text(lines(0, 500), ["{bad"])))
    failing(path, stored)
    write(path, gzip.compress(text(content)))

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        values(path, dict(stored))
    assert [] == values(path, dict(stored), files_changed="ignore")
    assert content == values(path, stored, files_changed="reread")


@pytest.mark.parametrize("changed", ["fail", "reread"])
def test_a_packed_file_that_only_unpacking_tells_apart(tmp_path: Path, changed: str) -> None:
    """The same inode, size and first bytes: whoever unpacks it to its place compares."""
    path, stored = tmp_path / "a.txt.gz", Stored()
    given = lambda mark: gzip.compress(  # noqa: E731
        b"x" * 3_000 + mark + b"\n\xff", compresslevel=0, mtime=0
    )
    path.write_bytes(given(b"a"))
    failing(path, stored)
    in_place(path, given(b"b"))

    if changed == "reread":
        assert ["x" * 3_000 + "b"] == failing(path, stored, files_changed=changed)
        return
    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        values(path, stored)


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("follow", ["true", "false"])
def test_a_rewritten_file_with_the_same_beginning_is_replaced(
    tmp_path: Path,
    done: bool,  # noqa: FBT001
    follow: str,
) -> None:
    """Otherwise torn records would be sent from the middle of others."""
    path, stored = tmp_path / "a.txt", Stored()
    header = b"h" * 1099 + b"\n"
    path.write_bytes(header + b"aaa\n" + (b"" if done else b"\xff\n"))
    (values if done else failing)(path, stored, files_follow=follow)

    path.write_bytes(header + b"bbbbbbbbbbb\nccc\n")

    with pytest.raises(TaskFailedError, match="was replaced by another one"):
        values(path, stored, files_follow=follow)


def test_a_file_rewritten_between_plan_and_slot_is_left_to_the_next_plan(tmp_path: Path) -> None:
    """The slot compares, too: nothing torn is sent."""
    path, stored = tmp_path / "a.txt", Stored()
    header = b"h" * 1099 + b"\n"
    path.write_bytes(header + b"aaa\n\xff\n")
    failing(path, stored)
    run = local_run(path, stored)
    run._connector.start(run._props)
    (task,) = run._tasks()
    path.write_bytes(header + b"bbbbbbbbbbb\nccc\n")

    run._drain(task)

    assert [] == run.delivered


def test_an_error_in_the_middle_of_a_batch_leaves_a_proof_of_all_before_it(tmp_path: Path) -> None:
    """A change of the last line that was sent is noticed, one of the next is not."""
    path, stored = tmp_path / "a.txt", Stored()
    path.write_bytes(text([f"line {n:03}" for n in range(60)]))
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    LocalRun(FilesConnector(), given, stored, stop_after=30).until_idle()

    by_renaming(path, path.read_bytes().replace(b"line 030", b"other"))
    assert 30 == len(values(path, dict(stored)))
    by_renaming(path, path.read_bytes().replace(b"line 029", b"other 29"))
    with pytest.raises(TaskFailedError, match="replaced"):
        values(path, stored)


def test_an_offset_of_an_earlier_version_still_holds(tmp_path: Path) -> None:
    """Without a proof the inode and the first bytes decide, as they did then."""
    path, stored = tmp_path / "a.txt", Stored()
    path.write_bytes(b"one\ntwo\n\xff\n")
    failing(path, stored)
    ((partition, offset),) = stored.items()
    old = {key: each for key, each in offset.items() if not key.startswith("check")}
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b"three\n")
    assert [] == failing(path, {partition: old})

    by_renaming(path, b"one\ntwo\nthree, and longer than before\n")
    with pytest.raises(TaskFailedError, match="replaced"):
        values(path, {partition: old})
    assert ["three, and longer than before"] == values(path, stored)


def test_a_range_can_be_mended_where_none_behind_it_was_begun(tmp_path: Path) -> None:
    """What moves bytes of later ranges that were sent is a replacement."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(text(lines(0, 10), ["{bad"], lines(10, 40)))
    assert lines(0, 10) == failing(path, stored, files_split_bytes="40")

    by_renaming(path, text(lines(0, 10), ["1"], lines(10, 40)))

    assert ["1", *lines(10, 40)] == values(path, stored, files_split_bytes="40")


def test_what_is_remembered_is_bounded() -> None:
    """However much is skipped; a place that is forgotten has the last proof before it."""
    content = b"x" * 3_000 + b"\n" * 1_000_000
    witness = FingerprintingStream(PlainStream(io.BytesIO(content)), keep=10_000)  # type: ignore[arg-type]
    target = memoryview(bytearray(4_096))
    witness.read_into(target)
    first = witness.fingerprint_at(3_000)

    while witness.read_into(target):
        assert len(witness._kept) <= 10_000

    assert first == witness.fingerprint_at(50_000)
    end = fingerprint_from(len(content), head=content[:1024], tail=content[-1024:])
    assert end == witness.fingerprint_at(len(content))


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 300)), max_size=40))
def test_what_is_kept_is_the_newest_bytes(steps: list[tuple[bytes, int]]) -> None:
    """However they come, and however many are forgotten in between; the memory for them does not grow with what has passed."""
    begin, told, most = b"head", b"head", len(b"head")
    kept = _Kept(100, begin)
    for content, forgotten in steps:
        kept.append(memoryview(content))
        told += content
        most = max(most, len(kept))
        kept.forget(min(forgotten, len(kept)))

        assert told[kept.base - 100 :] == bytes(kept.between(kept.base, 100 + len(told)))
        assert len(kept) == 100 + len(told) - kept.base
        assert len(kept._memory) <= 2 * most


def test_a_packed_file_is_not_judged_while_it_is_being_replaced(tmp_path: Path) -> None:
    """It is waited for until it has been unchanged for long enough."""
    path, stored = tmp_path / "a.jsonl.gz", Stored()
    whole = gzip.compress(text(lines(0, 5_000)))
    path.write_bytes(whole[:9_000])
    sent = failing(path, stored)
    in_place(path, whole[:100])

    run = local_run(path, stored, files_min_age_ms="60000")
    assert [] == run.until_idle()
    in_place(path, whole)

    assert lines(len(sent), 5_000) == values(path, stored)


def test_a_packed_file_is_compared_once_while_it_does_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each plan: it has to be unpacked for that."""
    path, stored = tmp_path / "a.jsonl.gz", Stored()
    path.write_bytes(gzip.compress(text(lines(0, 500), ["{bad"])))
    failing(path, stored)
    by_renaming(path, gzip.compress(text(lines(7, 900))))
    asked = list[object]()
    monkeypatch.setattr(prefix_check, "holds", lambda *given: asked.append(given) or False)
    run = local_run(path, stored, files_changed="ignore")
    run._connector.start(run._props)

    for _ in range(3):
        assert [] == list(run._tasks())

    assert 1 == len(asked)


def test_a_file_that_was_read_in_ranges_has_a_proof_of_its_end(tmp_path: Path) -> None:
    """So that growth is told from another file."""
    path, stored = tmp_path / "a.jsonl", Stored()
    path.write_bytes(text(lines(0, 300)))
    values(path, stored, files_split_bytes="500", files_follow="true")
    (entry,) = stored.values()
    assert entry["anchor"] == entry["checked"] == path.stat().st_size

    by_renaming(path, text(lines(0, 300), ["1"]))
    assert ["1"] == values(path, dict(stored), files_split_bytes="500", files_follow="true")
    by_renaming(path, text(lines(0, 299), ['{"n": 299}', "1"]))
    with pytest.raises(TaskFailedError, match="replaced"):
        values(path, stored, files_split_bytes="500", files_follow="true")
