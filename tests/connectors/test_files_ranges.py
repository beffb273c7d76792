"""Large Avro and Parquet files, and plain CSV, read in ranges by several slots."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files_steps import Steps, Stored
from headrace.connect import ConfigError, OffsetsError, SourceOffset, SourcePartition
from headrace.connect.errors import TaskFailedError
from headrace.connect.task import Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.progress import by_file
from headrace.connectors.files.task import FilesTask
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import Delivered, LocalContext, LocalRun, StoredOffsets
from sources.avro_files import SYNC, avro_file
from task.local_loop import Rounds

SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "n", "type": "int"}, {"name": "text", "type": "string"}],
}
ROWS = 40


def avro(count: int, per_block: int = 1) -> bytes:
    """Records that count up."""
    rows = [{"n": number, "text": f"text {number}"} for number in range(count)]
    return avro_file(SCHEMA, rows, per_block=per_block)


def parquet(count: int, per_group: int = 3) -> bytes:
    """Rows that count up, without anything that makes pages of the same rows the same."""
    out = io.BytesIO()
    columns: dict[str, list[Any]] = {
        "n": list(range(count)),
        "text": [f"text {number}" for number in range(count)],
    }
    table = pa.table(columns, schema=pa.schema([("n", pa.int32()), ("text", pa.utf8())]))
    pq.write_table(
        table,
        out,
        row_group_size=per_group,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    return out.getvalue()


Writer = Callable[[int, int], bytes]
WRITERS: dict[str, Writer] = {"a.avro": avro, "a.parquet": parquet}
NAMES = st.sampled_from(sorted(WRITERS))


def run(
    path: Path, stored: Stored, *, slots: int = 3, stop_after: int | None = None, **more: str
) -> list[Delivered]:
    """Run until idle, or until that many records; *more* are settings."""
    props = Steps(path, stored, **more).props
    return LocalRun(
        FilesConnector(), props, stored, slots=slots, stop_after=stop_after
    ).until_idle()


def numbers(delivered: Sequence[Delivered]) -> list[int]:
    """The field n of each record, in order."""
    return sorted(each.value["n"] for each in delivered)


def temporary() -> Iterator[Path]:
    """A folder of its own for each example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def entry(stored: Stored, path: Path) -> SourceOffset:
    """What is stored of the file at *path*, which is one entry for the whole."""
    assert [SourcePartition(filename=str(path))] == list(stored)
    return next(iter(stored.values()))


def ranges(stored: Stored) -> dict[tuple[object, object], SourceOffset]:
    """What is stored of ranges."""
    return {(each["from"], each["to"]): offset for each, offset in stored.items() if "from" in each}


@settings(max_examples=30, deadline=None)
@given(
    name=NAMES,
    count=st.integers(0, 14),
    group=st.integers(1, 5),
    size=st.integers(40, 400),
    other=st.sampled_from([0, 17, 50, 333]),
    cuts=st.lists(st.integers(1, 5), max_size=4),
    slots=st.integers(1, 4),
)
def test_ranges_give_each_record_once(  # noqa: PLR0917
    name: str, count: int, group: int, size: int, other: int, cuts: list[int], slots: int
) -> None:
    """Also when the run is stopped, and size and number of slots change meanwhile; the entry counts them all."""
    for folder in temporary():
        path = folder / name
        path.write_bytes(WRITERS[name](count, group))
        stored: Stored = {}
        found = list[Delivered]()
        for index, cut in enumerate(cuts):
            now = size if index % 2 == 0 else other
            found += run(path, stored, slots=1 + index, stop_after=cut, files_split_bytes=str(now))
        found += run(path, stored, slots=slots, files_split_bytes=str(size))
        assert list(range(count)) == numbers(found)
        done = entry(stored, path)
        assert (True, count) == (done.get("done"), done["recordCount"])
        assert [] == run(path, stored, files_split_bytes=str(size))


class Slots:
    """Slots of which one is at work at a time, in any order, and gets as far as *chance* lets it."""

    def __init__(self, steps: Steps, chance: random.Random) -> None:
        self.found = list[int]()
        self._steps = steps
        self._chance = chance

    def work(self) -> bool:
        """One plan, and some of one of its splits; whether there was anything."""
        plan = self._steps.plan(slots=4)
        for partition, offset in plan.offsets.items():
            if offset is None:
                self._steps.stored.pop(partition)
            else:
                self._steps.stored[partition] = offset
        splits = [split for share in plan.shares for split in share]
        if splits:
            self.read(self._chance.choice(splits))
        return bool(splits or plan.offsets)

    def read(self, split: Split) -> None:
        """Some of *split*, or all of it."""
        stored, task = self._steps.stored, FilesTask()
        task.initialize(LocalContext(offsets=StoredOffsets(stored), splits=[split]))
        task.start(self._steps.props)
        try:
            for _ in range(self._chance.randrange(1, 4)):
                polled = task.poll()
                for batch in polled or ():
                    self.found += [each["n"] for each in batch.values.to_pylist()]
                    stored[batch.source_partition] = batch.offset_at(-1) or {}
                if polled is None:
                    for partition, offset in (task.update_offsets({}) or {}).items():
                        stored[partition] = offset or {}
                    return
        finally:
            task.stop()


@settings(max_examples=20, deadline=None)
@given(
    name=NAMES,
    count=st.integers(1, 14),
    group=st.integers(1, 5),
    size=st.integers(40, 400),
    seed=st.integers(0, 2**16),
)
def test_ranges_may_be_read_in_any_order(  # noqa: PLR0917
    name: str, count: int, group: int, size: int, seed: int
) -> None:
    """One after the other or by turns, the last one first."""
    for folder in temporary():
        path = folder / name
        path.write_bytes(WRITERS[name](count, group))
        stored: Stored = {}
        more = {"files_split_bytes": str(size), "files_batch_max_rows": "2"}
        slots = Slots(Steps(path, stored, **more), random.Random(seed))
        for _ in range(500):
            if not slots.work():
                break
        assert list(range(count)) == sorted(slots.found)
        assert (True, count) == (
            entry(stored, path).get("done"),
            entry(stored, path)["recordCount"],
        )


@pytest.mark.parametrize("name", WRITERS)
def test_a_large_file_is_shared_out(tmp_path: Path, name: str):
    """Its ranges go to all slots; a small one beside it is read whole."""
    content = WRITERS[name](ROWS, 3)
    (tmp_path / name).write_bytes(content)
    (tmp_path / f"small_{name}").write_bytes(WRITERS[name](1, 1))
    steps = Steps(tmp_path, files_split_bytes=str(len(content) // 3 + 1))

    shares = steps.plan(slots=4).shares

    assert 4 == len(shares)
    assert 4 == sum(map(len, shares))
    whole = [each for share in shares for each in share if "from" not in each.partition]
    assert [str(tmp_path / f"small_{name}")] == [each.partition["filename"] for each in whole]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.avro.gz", gzip.compress(avro(ROWS))),
        ("a.jsonl.gz", gzip.compress(b'{"n":1}\n' * 999)),
        ("a.csv", b'n,m\n1,"2"\n' * ROWS),
    ],
)
def test_files_that_cannot_be_cut_are_read_whole(tmp_path: Path, name: str, content: bytes):
    """Where each file's format is told by its name."""
    (tmp_path / name).write_bytes(content)
    steps = Steps(tmp_path, files_split_bytes="20")

    ((split,),) = steps.plan(slots=4).shares

    assert {"filename"} == set(split.partition)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.jsonl.gz", "A compressed file"),
        ("b.jsonl", "A compressed file"),
        ("c.csv", "csv.quote=none"),
    ],
)
def test_why_a_large_file_is_read_whole_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, told: str
):
    """Of the first one in the log, and of each where all is explained; not of those that are small or are cut."""
    lines = b'{"n":1}\n' * 999
    for each in (name, f"other-{name}"):
        (tmp_path / each).write_bytes(lines if "csv" in name else gzip.compress(lines))
    (tmp_path / "cut.jsonl").write_bytes(b'{"n":1}\n' * 9)
    (tmp_path / "small.csv").write_bytes(b"n\n1\n")
    steps = Steps(tmp_path, files_split_bytes="20")

    steps.plan()
    steps.plan()

    (line,) = caplog.messages
    assert line.startswith(
        f"files.split.bytes: {tmp_path / name} has more bytes and is read whole."
    )
    assert told in line
    reasons = {key: each.reason for key, each in steps.explained().items() if each.reason}
    assert {name, f"other-{name}"} == reasons.keys()
    assert all(told in each for each in reasons.values())


@pytest.mark.parametrize("form", ["avro", "parquet", "jsonl", "lines"])
def test_formats_that_can_be_cut(form: str):
    """By their name in the configuration."""
    props = {"files.path": "a", "topic": "t", "files.format": form, "files.split.bytes": "9"}

    assert 9 == FilesConfig.parse(props).split_bytes


PLAIN_CSV = {
    "files.format": "csv",
    "csv.quote": "none",
    "csv.header": "false",
    "csv.names": "n,m",
}


@pytest.mark.parametrize(
    ("props", "key", "told"),
    [
        ({"files.format": "bytes"}, "files.split.bytes", "as bytes"),
        ({"files.format": "csv"}, "files.split.bytes", "every line end ends a row"),
        ({**PLAIN_CSV, "csv.names": ""}, "files.split.bytes", "csv.names"),
        ({**PLAIN_CSV, "csv.header": "true"}, "files.split.bytes", "csv.header=false"),
        ({**PLAIN_CSV, "csv.escape": "\\"}, "files.split.bytes", "csv.escape"),
        ({"files.format": "avro", "files.compression": "gzip"}, "files.split.bytes", "compressed"),
        ({"files.format": "avro", "files.headers": "record"}, "files.headers", "ask for position"),
        ({"files.format": "parquet", "files.headers": "last"}, "files.headers", "no record is"),
    ],
)
def test_what_cannot_be_cut_is_refused(props: dict[str, str], key: str, told: str):
    """Before anything is read."""
    with pytest.raises(ConfigError) as caught:
        FilesConfig.parse({"files.path": "a", "topic": "t", "files.split.bytes": "9", **props})

    assert [key] == [found for found, _ in caught.value.problems]
    assert told in str(caught.value)


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(0, 20),
    size=st.integers(1, 60),
    cuts=st.lists(st.integers(1, 4), max_size=3),
)
def test_csv_without_quotes_and_header_is_cut_between_its_lines(
    count: int, size: int, cuts: list[int]
) -> None:
    """Every range's reader is told the names."""
    for folder in temporary():
        path = folder / "a.csv"
        rows = [f'{number},"{number}' for number in range(count)]
        path.write_text("".join(f"{row}\n" for row in rows))
        stored: Stored = {}
        found = list[Delivered]()
        for cut in (*cuts, None):
            found += run(
                path,
                stored,
                stop_after=cut,
                csv_quote="none",
                csv_names="n,m",
                csv_header="false",
                files_split_bytes=str(size),
            )
        texts = [json.loads(each.value) for each in found]
        assert sorted(range(count)) == sorted(int(each["n"]) for each in texts)
        assert all(each["m"] == f'"{each["n"]}' for each in texts)


# ------------------------------------------------------------------ what was begun otherwise


@pytest.mark.parametrize(("name", "cut"), [("a.avro", True), ("a.parquet", False)])
def test_a_file_that_was_begun_as_a_whole(tmp_path: Path, name: str, cut: bool):  # noqa: FBT001
    """It is cut from where a byte is known to go on from, and read on as it was begun otherwise."""
    path, stored = tmp_path / name, Stored()
    path.write_bytes(WRITERS[name](ROWS, 3))
    found = run(path, stored, stop_after=6)

    pieces = [
        each.partition
        for share in Steps(path, stored, files_split_bytes="50").plan(slots=3).shares
        for each in share
    ]
    found += run(path, stored, files_split_bytes="50")

    assert cut == (len(pieces) > 1)
    assert list(range(ROWS)) == numbers(found)
    assert (True, ROWS) == (entry(stored, path).get("done"), entry(stored, path)["recordCount"])


@pytest.mark.parametrize("name", ["a.avro", "a.parquet", "a.txt"])
def test_an_entry_that_only_counts_is_not_cut(tmp_path: Path, name: str):
    """Nobody knows at which byte what is left of the file begins."""
    path = tmp_path / name
    lines = "".join(f"{number}\n" for number in range(ROWS)).encode()
    path.write_bytes(lines if name == "a.txt" else WRITERS[name](ROWS, 3))
    stored: Stored = {SourcePartition(filename=str(path)): {"recordCount": 5}}

    found = run(path, stored, files_split_bytes="30")

    assert ROWS - 5 == len(found)
    assert ROWS == entry(stored, path)["recordCount"]


@pytest.mark.parametrize("name", ["a.avro", "a.parquet", "a.txt"])
def test_a_count_that_a_person_sets_for_a_range_skips_its_records(tmp_path: Path, name: str):
    """Those that begin in it; 0 reads it again from its beginning."""
    path = tmp_path / name
    lines = "".join(f"line {number}\n" for number in range(ROWS)).encode()
    content = lines if name == "a.txt" else WRITERS[name](ROWS, 3)
    path.write_bytes(content)
    size = len(content) // 4
    piece = SourcePartition({"filename": str(path), "from": size, "to": 2 * size})
    stored: Stored = {}
    assert ROWS == len(run(path, stored, files_split_bytes=str(size)))
    counts = dict[int, int]()

    for skipped in (0, 2):
        again: Stored = {piece: {"recordCount": skipped}}
        FilesConnector().validate_offsets({}, again)
        found = run(path, again, files_split_bytes=str(size))
        counts[skipped] = sum(each.partition == piece for each in found)
        assert ROWS - skipped == len(found)
        assert ROWS == entry(again, path)["recordCount"]

    assert counts[0] == counts[2] + 2 > 2


def test_a_range_of_blocks_says_what_its_first_one_was(tmp_path: Path):
    """And a person may say so, as a byte."""
    path, stored = tmp_path / "a.avro", Stored()
    path.write_bytes(avro(ROWS))
    # Three records are those of the first range.
    run(path, stored, slots=1, stop_after=6, files_split_bytes="200")

    told = {piece: offset["firstBlock"] for piece, offset in ranges(stored).items() if piece[0]}

    assert told
    assert all(start <= first < stop for (start, stop), first in told.items())  # type: ignore[operator]
    FilesConnector().validate_offsets({}, stored)
    with pytest.raises(OffsetsError, match="firstBlock"):
        FilesConnector().validate_offsets(
            {}, {each: {"recordCount": 1, "firstBlock": -1} for each in stored}
        )


def test_an_avro_file_that_grows_goes_on_behind_its_ranges(tmp_path: Path):
    """Blocks are added behind the last one, as writers that append do."""
    path, stored = tmp_path / "a.avro", Stored()
    whole = avro(ROWS)
    path.write_bytes(avro(ROWS // 2))
    assert whole.startswith(avro(ROWS // 2))
    found = run(path, stored, stop_after=8, files_split_bytes="100")
    assert ranges(stored)

    with path.open("ab") as file:
        file.write(whole[len(avro(ROWS // 2)) :])
    found += run(path, stored, files_split_bytes="100")

    assert list(range(ROWS)) == numbers(found)
    assert ROWS == entry(stored, path)["recordCount"]


@pytest.mark.parametrize("policy", ["fail", "reread"])
def test_a_parquet_file_that_grows_while_it_is_read_in_ranges_is_another_one(
    tmp_path: Path, policy: str
):
    """Its row groups may begin where its footer was, in a range that is done."""
    path, stored = tmp_path / "a.parquet", Stored()
    path.write_bytes(parquet(ROWS, 10))
    longer = parquet(3 * ROWS, 10)
    assert path.read_bytes()[:1024] == longer[:1024]
    run(path, stored, slots=1, stop_after=15, files_split_bytes="500")
    assert ranges(stored)

    with path.open("r+b") as file:
        file.write(longer)

    if policy == "fail":
        with pytest.raises(TaskFailedError, match="replaced"):
            run(path, stored, files_split_bytes="500")
        return
    found = run(path, stored, files_split_bytes="500", files_changed="reread")
    assert list(range(3 * ROWS)) == numbers(found)


def test_ranges_stay_as_planned_when_splitting_is_switched_off(tmp_path: Path):
    """Until the file is done."""
    path, stored = tmp_path / "a.parquet", Stored()
    path.write_bytes(parquet(ROWS, 3))
    found = run(path, stored, slots=1, stop_after=7, files_split_bytes="300")
    before = set(ranges(stored))

    plan = Steps(path, stored).plan(slots=2)

    assert before <= {
        (each.partition["from"], each.partition["to"]) for share in plan.shares for each in share
    } | {piece for piece, offset in ranges(stored).items() if offset.get("done")}
    assert list(range(ROWS)) == numbers(found + run(path, stored))


# ------------------------------------------------------------------ damage

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)


def rounds(path: Path, size: int, errors: ErrorPolicy = DEAD) -> Rounds:
    """Rounds of the connector over a file in ranges."""
    props = {**Steps(path).props, "name": "c", "files.split.bytes": str(size)}
    return Rounds(FilesConnector, props, errors, value_converter="json")


def sent(played: Rounds) -> list[int]:
    """The field n of each record."""
    values = (json.loads(each) for each in played.values("t") if each is not None)
    return sorted(each["payload"]["n"] if "payload" in each else each["n"] for each in values)


def damaged(name: str, group: int) -> bytes:
    """A file whose block or row group of that number holds a byte that lies."""
    return _lying(name, WRITERS[name](ROWS, 10), 10 * group + 5)[0]


def _lying(name: str, content: bytes, number: int) -> tuple[bytes, int]:
    """*content* with a byte that lies about the block or the text of that number; and its place."""
    # A block that says that it has -1 records, and a text that its page's checksum does not know.
    lie = bytes([1]) if name == "a.avro" else b"\xff"
    if name == "a.avro":
        place = [found.end() for found in re.finditer(SYNC, content)][number // 10]
    else:
        place = content.index(b"text %d" % number)
    return content[:place] + lie + content[place + 1 :], place


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("group", [0, 1, 3])
def test_damage_puts_its_range_in_quarantine_alone(tmp_path: Path, name: str, group: int):
    """All other ranges are read; the rest of that one is one letter, and nothing is read twice."""
    path = tmp_path / name
    content = damaged(name, group)
    path.write_bytes(content)
    begins = _begins(name)
    played = rounds(path, begins[1] - begins[0] - 1)

    played.play()
    played.play()

    others = [n for n in range(ROWS) if n // 10 != group]
    assert others == [each for each in sent(played) if each // 10 != group]
    assert len(sent(played)) < ROWS
    assert [None] == played.values("dead")
    quarantined = [piece for piece, each in ranges(played.stored).items() if "quarantined" in each]
    assert 1 == len(quarantined)
    ((start, stop),) = quarantined
    assert start <= begins[group] < stop  # type: ignore[operator]
    assert by_file(played.stored)[str(path)].finished


def _begins(name: str) -> list[int]:
    """Where the blocks or row groups of ten begin."""
    content = WRITERS[name](ROWS, 10)
    if name == "a.parquet":
        metadata = pq.read_metadata(io.BytesIO(content))
        return [
            metadata.row_group(number).column(0).data_page_offset
            for number in range(metadata.num_row_groups)
        ]
    return [found.end() for found in re.finditer(SYNC, content)][:-1]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_which_no_range_was_sent_is_read_when_it_is_replaced(tmp_path: Path, name: str):
    """Each range needs what its first or last bytes say; the new one may be cut otherwise."""
    path = tmp_path / name
    whole = WRITERS[name](ROWS, 10)
    path.write_bytes(b"\0\0\0\0" + whole[4:])
    played = rounds(path, len(whole) // 3)
    played.play()
    assert not sent(played)
    assert all("quarantined" in each for each in played.stored.values())
    other = path.with_name(".other")
    other.write_bytes(whole)
    other.replace(path)
    again = rounds(path, len(whole) // 4)
    again.stored.update(played.stored)

    again.play()

    assert list(range(ROWS)) == sent(again)
    assert entry(again.stored, path)["done"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_range_of_which_nothing_was_sent_begins_where_it_did_when_it_is_released(
    tmp_path: Path, name: str
):
    """Its offset speaks of no block or row group yet."""
    path = tmp_path / name
    whole = WRITERS[name](4 * ROWS, 10)
    # Behind what tells one file from another.
    content, place = _lying(name, whole, 100 if name == "a.avro" else 105)
    path.write_bytes(content)
    played = rounds(path, 100)
    played.play()
    ((piece, offset),) = [each for each in played.stored.items() if "quarantined" in each[1]]
    assert not offset["recordCount"]
    with path.open("r+b") as file:
        file.seek(place)
        file.write(whole[place : place + 1])
    played.stored[piece] = {key: offset[key] for key in offset if key != "quarantined"}

    played.play()

    assert list(range(4 * ROWS)) == sent(played)


def test_a_block_that_was_half_written_when_it_was_planned_is_read_whole(tmp_path: Path):
    """Its range ends behind it, and the next plan has what is behind that."""
    path, stored = tmp_path / "a.avro", Stored()
    whole = avro(ROWS, 10)
    path.write_bytes(whole[: _begins("a.avro")[3] - 20])
    steps = Steps(path, stored, files_split_bytes="150")
    slots = Slots(steps, random.Random(1))
    planned = steps.plan(slots=1)
    path.write_bytes(whole)

    for split in planned.shares[0]:
        slots.read(split)
    while slots.work():
        pass

    assert list(range(ROWS)) == sorted(slots.found)
    assert ROWS == entry(stored, path)["recordCount"]


def test_a_block_whose_marker_was_lost_is_read_when_that_is_put_right(tmp_path: Path):
    """The range that it begins in cannot find it; what the one before it reads to tells that it is missing."""
    path = tmp_path / "a.avro"
    whole = avro(4 * ROWS, 10)
    ends = [found.end() for found in re.finditer(SYNC, whole)]
    # Behind what tells one file from another.
    begin = next(number for number, end in enumerate(ends) if end > 1100)
    place = ends[begin] - 3
    path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
    played = rounds(path, ends[begin] - 5)
    played.play()
    lost = range(10 * begin - 10, 10 * begin + 10)
    assert [n for n in range(4 * ROWS) if n not in lost] == sent(played)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(whole[place : place + 1])
    for partition, offset in list(played.stored.items()):
        played.stored[partition] = {key: offset[key] for key in offset if key != "quarantined"}

    played.play()

    assert list(range(4 * ROWS)) == sent(played)
    assert (True, 4 * ROWS) == (
        entry(played.stored, path)["done"],
        entry(played.stored, path)["recordCount"],
    )


def test_the_last_range_lets_one_transaction_write_the_entry_for_all(tmp_path: Path):
    """It counts the records of all ranges, says that the file is done, and removes them."""
    path, stored = tmp_path / "a.parquet", Stored()
    path.write_bytes(parquet(ROWS, 3))
    steps = Steps(path, stored, files_split_bytes="1000")
    slots = Slots(steps, random.Random(1))
    while (plan := steps.plan(slots=4)).shares:
        assert not plan.offsets
        slots.work()

    pieces = {part for part in stored if "from" in part}
    assert len(pieces) > 2
    assert pieces == {part for part, offset in plan.offsets.items() if offset is None}
    whole = plan.offsets[SourcePartition(filename=str(path))] or {}
    # Its anchor is the number of its row groups.
    assert (True, ROWS, 14) == (whole["done"], whole["recordCount"], whole["anchor"])
