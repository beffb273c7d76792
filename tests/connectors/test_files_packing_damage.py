"""A flipped bit in a packed file: it shows at a checksum behind records that it has spoilt."""

from __future__ import annotations

import bz2
import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connect.connector import PlanRequest
from headrace.connect.errors import RetriableError
from headrace.connectors.files import opening
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.task import FilesTask
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import LocalContext, StoredOffsets
from task.local_loop import Rounds

TOLERANT = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
_DRAWN = random.Random(7)
LINES = b"".join(b'{"n":%d,"salt":"%x"}\n' % (n, _DRAWN.getrandbits(200)) for n in range(3000))
Pack = Callable[[bytes], bytes]


def zstd(content: bytes) -> bytes:
    """A frame without a checksum, so that its damage need not show at all."""
    return pa.Codec("zstd").compress(content, asbytes=True)


def flipped(content: bytes, *, at: float) -> bytes:
    """*content* with one bit turned over at that share of it."""
    place = int(len(content) * at)
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


def rounds(folder: Path, errors: ErrorPolicy = TOLERANT) -> Rounds:
    """Rounds over *folder*, in small batches."""
    props = {"name": "c", "topic": "t", "files.path": str(folder), "files.min.age.ms": "0"}
    return Rounds(FilesConnector, {**props, "files.batch.max.rows": "100"}, errors)


@pytest.mark.parametrize(
    ("name", "pack"), [("a.jsonl.gz", gzip.compress), ("a.jsonl.bz2", bz2.compress)]
)
@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_damaged_packing_is_told_as_such(tmp_path: Path, name: str, pack: Pack, at: float) -> None:
    """No line is blamed, and the entry tells how many records were sent before it was found."""
    (tmp_path / name).write_bytes(flipped(pack(LINES), at=at))
    (tmp_path / "z.jsonl").write_text('{"n":-1}\n')
    played = rounds(tmp_path)

    played.play()

    assert [None] == played.values("dead")
    (told,) = (str(each["quarantined"]) for each in played.stored.values() if "quarantined" in each)
    sent = len(played.values("t")) - 1
    assert "This is not sound" in told
    assert "JSON" not in told
    noun = "record was" if sent == 1 else "records were"
    assert (f"{sent} {noun} sent before the damage was found" in told) == (sent > 0)


def test_without_tolerance_the_packing_is_to_be_replaced(tmp_path: Path) -> None:
    """Nobody can correct a line that was never written."""
    (tmp_path / "a.jsonl.bz2").write_bytes(flipped(bz2.compress(LINES), at=0.5))

    with pytest.raises(
        Exception, match=r"This is not sound bzip2 data .* replace the file"
    ) as told:
        rounds(tmp_path, ErrorPolicy()).play()

    assert "Correct the line" not in str(told.value)


def test_a_bad_line_of_a_sound_member_is_a_bad_line(tmp_path: Path) -> None:
    """What comes before a checksum that holds was packed so; only behind it something is damaged."""
    bad = gzip.compress(b'{"n":0}\nbad\n')
    (tmp_path / "a.jsonl.gz").write_bytes(bad * 2 + flipped(gzip.compress(LINES), at=0.9))
    played = rounds(tmp_path)

    played.play()

    assert [b"bad", b"bad", None] == played.values("dead")


def test_a_bad_line_of_a_sound_file_is_a_bad_line(tmp_path: Path) -> None:
    """However it is packed."""
    content = LINES + b"bad\n" + LINES
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content))
    (tmp_path / "b.jsonl.bz2").write_bytes(bz2.compress(content))
    (tmp_path / "c.jsonl.zst").write_bytes(zstd(content))
    played = rounds(tmp_path)

    played.play()

    assert [b"bad"] * 3 == played.values("dead")
    assert 18_000 == len(played.values("t"))


def with_wrong_checksum(content: bytes) -> bytes:
    """A gzip of *content* whose checksum, in its last eight bytes, is another one's."""
    return flipped(gzip.compress(content), at=1 - 1e-9)


@pytest.mark.parametrize("bound", ["packed", "unpacked"])
def test_only_so_much_is_unpacked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """Beyond it the record is what is reported, and the damage where reading meets it."""
    # Both are larger than a piece that is unpacked at a time.
    content = b"bad\n" + (b'{"n":"%s"}\n' % (b"x" * 60_000) * 50 if bound == "unpacked" else LINES)
    packed = with_wrong_checksum(content)
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    most = len(packed) - 1 if bound == "packed" else len(packed)
    monkeypatch.setattr(opening, "_MOST_UNPACKED_AGAIN", most)
    assert len(content) > 2 * most or bound == "packed"
    played = rounds(tmp_path)

    played.play()

    assert [b"bad", None] == played.values("dead")


def test_a_stop_ends_the_second_unpacking(tmp_path: Path) -> None:
    """Nothing is reported of the record then; whoever reads it next looks again."""
    (tmp_path / "a.jsonl.gz").write_bytes(with_wrong_checksum(b"bad\n" + LINES))
    props = {"topic": "t", "files.path": str(tmp_path), "files.min.age.ms": "0"}
    connector, stored = FilesConnector(), StoredOffsets({})
    connector.start(props)
    (share,) = connector.plan(PlanRequest(offsets=stored, slots=1)).shares
    context = LocalContext(offsets=stored, splits=share, asked_to_stop=True)
    task = FilesTask()
    task.initialize(context)
    task.start(props)

    with pytest.raises(RetriableError, match="stopping"):
        task.poll()
    context.asked_to_stop = False
    with pytest.raises(Exception, match="This is not sound gzip data"):
        task.poll()
    task.stop()
