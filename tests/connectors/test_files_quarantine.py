"""Files of which nothing more can be read: put in quarantine, told, and read again when they are mended."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connect.connector import PlanRequest
from headrace.connect.errors import OffsetsError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.candidate import Candidate, Decision, Rules
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local.prefix_check import PrefixCheck
from headrace.connectors.files.planning import decide
from headrace.connectors.files.progress import Progress, by_file
from headrace.connectors.files.stored.selection import StoredSeen
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import StoredOffsets
from sources.avro_files import avro_file
from task.local_loop import Rounds

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
ROWS = 40
LINES = b"".join(
    b'{"n":%d,"salt":"%s"}\n' % (n, os.urandom(30).hex().encode()) for n in range(ROWS)
)
CSV = b"n,m\n" + b"".join(b"%d,x\n" % n for n in range(ROWS))


def parquet() -> bytes:
    """Rows in row groups of ten."""
    out = io.BytesIO()
    table = pa.table({"n": [str(n) * 40 for n in range(ROWS)]})
    pq.write_table(
        table,
        out,
        row_group_size=10,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    return out.getvalue()


def avro(damage: int = 0) -> bytes:
    """Records in blocks of one; *damage* bytes before the end lie."""
    whole = avro_file("int", list(range(ROWS)), per_block=1)
    at = len(whole) - damage
    return whole if not damage else whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


PARQUET = parquet()
DAMAGED = {
    "cut.jsonl.gz": gzip.compress(LINES)[:-300],
    "wrong.jsonl.gz": gzip.compress(LINES)[:-8] + b"\0" * 8,
    "never.jsonl.gz": b"no gzip at all",
    "open.csv": CSV + b'"never closed,\n1,2\n',
    "header.csv": b'n,"n\n1,2\n',
    "quoted_header.csv": b'id,"na"me\n1,2\n3,4\n',
    "latin_header.csv": "id,größe\n1,2\n3,4\n".encode("latin-1"),
    "utf16.jsonl": "\ufeff{}\n".encode("utf-16"),
    "sync.avro": avro(damage=3),
    "header.avro": b"Obj\1",
    "footer.parquet": PARQUET[:-1],
    "page.parquet": PARQUET.replace(b"25" * 40, b"26" * 40),
}
WITHOUT_RECORDS = {
    "wrong.jsonl.gz",
    "never.jsonl.gz",
    "header.csv",
    "quoted_header.csv",
    "latin_header.csv",
    "utf16.jsonl",
    "header.avro",
    "footer.parquet",
}


def rounds(folder: Path, errors: ErrorPolicy = DEAD, **more: str) -> Rounds:
    """Rounds of the connector over *folder*, in small batches."""
    props = {
        "name": "c",
        "topic": "t",
        "files.path": str(folder),
        "files.min.age.ms": "0",
        "files.batch.max.rows": "7",
    }
    given = props | {key.replace("_", "."): each for key, each in more.items()}
    # The rows of Parquet files are no strings.
    has_structs = any(folder.glob("*.parquet"))
    return Rounds(
        FilesConnector, given, errors, value_converter="json" if has_structs else "string"
    )


def replace(path: Path, content: bytes) -> None:
    """Move a file with *content* to *path*; one written in its place may be taken for the same that grew."""
    other = path.with_name(".other")
    other.write_bytes(content)
    other.replace(path)


def entry(played: Rounds) -> SourceOffset:
    """The only entry."""
    (offset,) = played.stored.values()
    return offset


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("topic", ["dead", None])
def test_the_rest_of_a_damaged_file_is_one_letter_and_the_next_file_is_read(
    tmp_path: Path, name: str, topic: str | None
):
    """What is before the damage is sent; the entry says why, and neither is read again."""
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    (tmp_path / "z.jsonl").write_bytes(b'{"z":1}\n')
    played = rounds(tmp_path, ErrorPolicy(tolerate=True, dead_letters=topic, headers=True))

    played.play()
    sent = len(played.records)
    played.play()

    assert sent == len(played.records), "nothing is read again"
    assert 1 == played.tolerated == played.quarantined
    found = by_file(played.stored)[str(path)]
    assert found.quarantined
    assert found.entry
    count = found.entry["recordCount"]
    assert (count == 0) == (name in WITHOUT_RECORDS)
    assert count == len(played.values("t")) - 1
    assert by_file(played.stored)[str(tmp_path / "z.jsonl")].done
    if topic is None:
        return
    assert [None] == played.values("dead")
    (headers,) = [dict(each) for each in played.headers if each]
    reference = json.loads(headers["__connect.errors.source.reference"] or b"")
    assert (str(path), True, found.entry["version"]) == (
        reference["object"],
        reference["rest"],
        reference["version"],
    )
    assert found.entry == reference["sourceOffset"]


@pytest.mark.parametrize("name", DAMAGED)
def test_without_tolerance_the_task_fails_before_it(tmp_path: Path, name: str):
    """As it always did, and at each start."""
    (tmp_path / name).write_bytes(DAMAGED[name])
    played = rounds(tmp_path, ErrorPolicy())

    for _ in range(2):
        with pytest.raises(Exception, match=name):
            played.play()

    assert not any("quarantined" in each for each in played.stored.values())
    assert not played.quarantined


@pytest.mark.parametrize("killed_at", range(8))
def test_wherever_it_is_killed_there_is_one_letter(tmp_path: Path, killed_at: int):
    """The letter and the entry are one transaction."""
    for name in ("cut.jsonl.gz", "open.csv"):
        (tmp_path / name).write_bytes(DAMAGED[name])
    expected = rounds(tmp_path)
    expected.play()
    played = rounds(tmp_path)

    played.play(killed_at=killed_at)
    played.play()

    assert sorted(map(str, played.records)) == sorted(map(str, expected.records))
    assert [None, None] == played.values("dead")


def test_a_file_in_quarantine_is_told_at_each_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """With the reason, and what releases it; once for each connector."""
    path = tmp_path / "a.csv"
    path.write_bytes(DAMAGED["open.csv"])
    played = rounds(tmp_path)
    played.play()

    with caplog.at_level(logging.WARNING):
        played.play()

    (line,) = {each for each in caplog.messages if "quarantine" in each}
    assert line.startswith(f"{path}: It is in quarantine")
    assert "A quoted field of this record is never closed" in line
    assert "Move a whole file over it, as another file" in line
    assert "files.changed" in line
    assert "headrace offsets set CONNECTOR" in line


def test_explain_shows_the_reason(tmp_path: Path):
    """As a plan would tell it."""
    (tmp_path / "a.csv").write_bytes(DAMAGED["open.csv"])
    played = rounds(tmp_path)
    played.play()
    connector = FilesConnector()
    connector.start(played.props)

    (row,) = connector.explain(PlanRequest(slots=1, offsets=StoredOffsets(played.stored)))

    assert "It is in quarantine" in (row.reason or "")
    assert not row.fails


def test_an_altered_offset_releases_it(tmp_path: Path):
    """It is read again from its beginning, and put in quarantine again while it is damaged."""
    (tmp_path / "a.csv").write_bytes(DAMAGED["open.csv"])
    played = rounds(tmp_path)
    played.play()
    released: dict[SourcePartition, SourceOffset] = {
        partition: {"recordCount": 0} for partition in played.stored
    }
    FilesConnector().validate_offsets({}, released)
    played.stored.update(released)

    played.play()

    assert 2 * ROWS == len(played.values("t"))
    assert [None, None] == played.values("dead")
    assert entry(played)["quarantined"]


@pytest.mark.parametrize(
    ("name", "whole"), [("cut.jsonl.gz", gzip.compress(LINES)), ("open.csv", CSV + b"1,2\n")]
)
def test_a_file_that_is_mended_goes_on_where_it_stopped(tmp_path: Path, name: str, whole: bytes):
    """On local disk it is the same file as long as it begins with what was sent."""
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    played = rounds(tmp_path)
    played.play()
    before = len(played.values("t"))
    replace(path, whole)

    played.play()

    assert ROWS + (name == "open.csv") == len(played.values("t"))
    assert before
    assert entry(played)["done"]
    assert "quarantined" not in entry(played)


@pytest.mark.parametrize("name", sorted(WITHOUT_RECORDS))
def test_a_file_of_which_nothing_was_sent_is_read_when_it_is_replaced(tmp_path: Path, name: str):
    """Whatever files.changed says: there is nothing that it could not go on from."""
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    played = rounds(tmp_path)
    played.play()
    contents = {"gz": gzip.compress(LINES), "csv": CSV, "jsonl": LINES, "avro": avro()}
    replace(path, contents.get(path.suffix[1:], PARQUET))

    played.play()

    assert ROWS == len(played.values("t"))
    assert entry(played)["done"]


@pytest.mark.parametrize(
    "name", ["cut.jsonl.gz", "never.jsonl.gz", "open.csv", "utf16.jsonl", "header.avro"]
)
def test_a_file_in_quarantine_that_grows_stays_there(tmp_path: Path, name: str):
    """It is the same one; each growth would be one letter more."""
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    played = rounds(tmp_path)
    played.play()
    sent = len(played.records)

    for _ in range(3):
        with path.open("ab") as log:
            log.write(b'more",1\n')
        played.play()

    assert sent == len(played.records)
    assert 1 == played.quarantined


def test_a_file_that_is_put_in_the_place_of_one_in_quarantine_is_for_files_changed(tmp_path: Path):
    """Longer, and with the inode and the first bytes of the other one: what was sent tells."""
    path = tmp_path / "a.csv"
    begin = b"n,m\n" + b"0,x\n" * 300
    path.write_bytes(begin + DAMAGED["open.csv"])
    played = rounds(tmp_path, files_changed="reread")
    played.play()
    path.write_bytes(begin + b"1,y\n" * 200)

    played.play()

    assert entry(played)["done"]


@pytest.mark.parametrize("more", [b"", b"more"])
def test_a_packed_file_in_quarantine_is_not_unpacked_by_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bytes
):
    """It may be large, and is the same one."""
    (tmp_path / "cut.jsonl.gz").write_bytes(DAMAGED["cut.jsonl.gz"])
    played = rounds(tmp_path, files_changed="reread")
    played.play()
    with (tmp_path / "cut.jsonl.gz").open("ab") as log:
        log.write(more)
    looked = list[object]()
    monkeypatch.setattr(PrefixCheck, "holds", lambda _, file, *__: looked.append(file) or True)

    played.play()

    assert not looked


def test_a_file_in_quarantine_may_go(tmp_path: Path):
    """It is not one that vanished before it was read to its end."""
    path = tmp_path / "a.csv"
    path.write_bytes(DAMAGED["open.csv"])
    played = rounds(tmp_path)
    played.play()
    path.unlink()

    played.play()

    assert entry(played)["quarantined"]


# ------------------------------------------------------------------ planning, without files

PATH = "s3://b/a.jsonl.gz"
WHOLE = SourcePartition(filename=PATH)
STOPPED: SourceOffset = {
    "recordCount": 3,
    "anchor": 30,
    "skip": 0,
    "version": "v1",
    "size": 100,
    "format": "jsonl",
    "quarantined": "byte 30: It is cut off.",
}


def decided(
    *,
    version: str = "v1",
    ranges: dict[tuple[int, int], SourceOffset] | None = None,
    **more: object,
) -> Decision:
    """The decision about an object that is in quarantine, or ranges of it are."""
    split = bool(ranges)
    candidate = Candidate(
        file=StoredSeen(path=PATH, size=100, version=version, modified_ms=0),
        format="jsonl",
        packed=not split,
        settled=True,
        readable=100,
        splittable=split,
    )
    progress = Progress(entry=None if split else STOPPED, ranges=ranges or {})
    rules = Rules(grow=False, **({"split_bytes": 50} if split else {}), **more)  # type: ignore[arg-type]
    return decide(candidate, progress, rules)


def test_the_same_version_stays_in_quarantine():
    """And says why."""
    decision = decided()

    assert ((), {}) == (decision.pieces, decision.offsets)
    assert "byte 30: It is cut off." in (decision.told or "")


@pytest.mark.parametrize("policy", ["fail", "ignore", "reread"])
def test_another_version_of_an_object_is_for_files_changed(policy: str):
    """Records of the one before were sent."""
    if policy == "fail":
        with pytest.raises(TaskFailedError, match=r"files\.changed=reread"):
            decided(version="v2", changed=policy)
        return

    decision = decided(version="v2", changed=policy)

    assert [None] * (policy == "reread") == [piece.split.offset for piece in decision.pieces]


def test_other_ranges_of_a_file_are_read_on():
    """A range is in quarantine alone; the file is not done."""
    first: SourceOffset = {**STOPPED, "recordCount": 0, "anchor": 0}
    second: SourceOffset = {key: STOPPED[key] for key in STOPPED if key != "quarantined"}

    decision = decided(ranges={(0, 50): first, (50, 100): {**second, "anchor": 60}})

    assert [50] == [piece.split.partition["from"] for piece in decision.pieces]
    assert "quarantine" in (decision.told or "")
    closed = decided(ranges={(0, 50): first, (50, 100): {**second, "anchor": 100, "done": True}})
    assert ([], {}) == (list(closed.pieces), closed.offsets)


def test_a_range_in_quarantine_does_not_stand_for_the_others():
    """A file that vanishes is one that was not read to its end while any of them is left."""
    stopped: SourceOffset = {**STOPPED, "recordCount": 0, "anchor": 0}
    half: SourceOffset = {key: STOPPED[key] for key in STOPPED if key != "quarantined"}
    done: SourceOffset = {**half, "anchor": 100, "done": True}

    assert not Progress(ranges={(0, 50): stopped}).finished
    assert not Progress(ranges={(50, 100): stopped}).finished
    assert not Progress(ranges={(0, 50): stopped, (50, 100): half}).finished
    assert Progress(ranges={(0, 50): stopped, (50, 100): done}).finished
    assert Progress(ranges={(0, 50): stopped, (50, 100): stopped}).finished
    assert not Progress(ranges={(0, 50): {**done, "anchor": 60}}).finished
    assert Progress(entry={**half, "anchor": 50}, ranges={(50, 100): stopped}).finished
    assert Progress(entry=STOPPED).finished


def test_an_entry_that_a_person_set_counts_more_than_ranges():
    """These are removed, and the file is read in one piece from there."""
    ranges: dict[tuple[int, int], SourceOffset] = {(0, 50): {**STOPPED, "anchor": 20}}
    candidate = Candidate(
        file=StoredSeen(path=PATH, size=100, version="v1", modified_ms=0),
        format="jsonl",
        packed=False,
        settled=True,
        readable=100,
        splittable=True,
    )
    progress = Progress(entry={"recordCount": 0}, ranges=ranges)

    decision = decide(candidate, progress, Rules(split_bytes=10))

    assert [WHOLE] == [piece.split.partition for piece in decision.pieces]
    assert {SourcePartition({"filename": PATH, "from": 0, "to": 50}): None} == decision.offsets


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"quarantined": 1}, "must be a string"),
        ({"quarantined": "so", "done": True}, "Leave one of them out"),
    ],
)
def test_what_cannot_be_in_quarantine_is_vetoed(offset: SourceOffset, words: str):
    """Its own entries are accepted."""
    FilesConnector().validate_offsets({}, {WHOLE: STOPPED})
    with pytest.raises(OffsetsError, match=words):
        FilesConnector().validate_offsets({}, {WHOLE: offset})


def test_named_rows_below_a_header_that_is_not_text_are_not_read(tmp_path: Path):
    """The header would be taken for the first bad row, and the first row for the header."""
    (tmp_path / "a.csv").write_bytes(b"id,gr\xf6\xdfe\n1,2\n3,4\n")
    played = rounds(tmp_path, csv_names="id,size", csv_header="true")

    played.play()

    assert ([], 1) == (played.values("t"), played.quarantined)


@pytest.mark.parametrize(
    "block", ["4096", "1048576"], ids=["larger than a block", "within a block"]
)
@pytest.mark.parametrize("names", ["", "id,size"])
def test_rows_below_a_header_that_is_too_long_are_not_read(tmp_path: Path, block: str, names: str):
    """Without quotes each line end ends a row, and the first row would be taken for the header."""
    (tmp_path / "a.csv").write_bytes(b"\nid," + b"n" * 9_000 + b"\n1,2\n3,4\n")
    played = rounds(
        tmp_path,
        csv_quote="none",
        csv_names=names,
        files_max_line_bytes="100",
        files_batch_max_bytes=block,
    )

    played.play()

    assert ([], 1, [None]) == (played.values("t"), played.quarantined, played.values("dead"))
    assert "byte 1 (record 1): This record is longer" in str(entry(played)["quarantined"])


def test_where_there_is_no_header_the_first_row_is_a_row(tmp_path: Path):
    """The rows behind it are read as well."""
    (tmp_path / "a.csv").write_bytes(b"1,\xf6\n3,4\n")
    played = rounds(tmp_path, csv_names="a,b", csv_header="false")

    played.play()

    assert [b'{"a":"3","b":"4"}'] == played.values("t")
    assert [b"1,\xf6"] == played.values("dead")


def test_a_packed_file_that_is_cut_off_inside_a_long_line_is_put_in_quarantine(tmp_path: Path):
    """It does not fail the task: that would fail at each start."""
    line = os.urandom(50_000).hex().encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"1\n" + line + b"\n2\n")[:-20_000])
    (tmp_path / "b.jsonl").write_bytes(b"3\n")
    played = rounds(tmp_path, files_max_line_bytes="4096", files_batch_max_bytes="4096")

    played.play()

    assert [b"1", b"3"] == sorted(played.values("t"))
    assert (1, [None]) == (played.quarantined, played.values("dead"))
    assert "cut off" in str(by_file(played.stored)[str(tmp_path / "a.jsonl.gz")].quarantined)
