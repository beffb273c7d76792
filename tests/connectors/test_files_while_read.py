"""Files on local disk that are overwritten, appended to or removed between a plan and its end, in every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connect import RecordError, SourceOffset, SourcePartition, TaskFailedError
from headrace.connect.task import SourceTask
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun, batches_of

Stored = dict[SourcePartition, SourceOffset]
Rows = Sequence[dict[str, Any]]
SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}],
}
OLD = [{"n": n, "text": f"old {n} {'x' * 40}"} for n in range(300)]
NEW = [{"n": n, "text": f"new {n} {'y' * 40}"} for n in range(300)]
MORE = [{"n": n, "text": f"more {n}"} for n in range(300, 310)]
PIECE = 100


def jsonl(rows: Rows) -> bytes:
    """A document on each line."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def table(rows: Rows) -> bytes:
    """CSV, with line ends in quotes."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["n", "text"])
    writer.writeheader()
    writer.writerows([{**row, "text": row["text"].replace(" ", "\n")} for row in rows])
    return out.getvalue().encode()


def avro(rows: Rows) -> bytes:
    """A file of small blocks, which has the same marker each time."""
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, rows, sync_interval=500, sync_marker=b"the same for all")
    return out.getvalue()


def parquet(rows: Rows) -> bytes:
    """A file of small row groups."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), out, row_group_size=20, compression="none")
    return out.getvalue()


def pieces(rows: Rows) -> bytes:
    """Rows of one length."""
    return b"".join(json.dumps(row).encode().ljust(PIECE) for row in rows)


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "a.jsonl": jsonl,
    "a.csv": table,
    "a.avro": avro,
    "a.parquet": parquet,
    "a.bin": pieces,
    "a.jsonl.gz": lambda rows: gzip.compress(jsonl(rows), mtime=0),
}
every_format = pytest.mark.parametrize("name", WRITERS)


def props(path: Path, **more: str) -> dict[str, str]:
    """The connector's configuration, with small batches."""
    form = {"files.format": "bytes", "files.bytes.per.record": str(PIECE)}
    given = {
        "files.path": str(path.parent),
        "topic": "t",
        "files.min.age.ms": "0",
        "files.batch.max.bytes": "4096",
        "files.batch.max.rows": "7",
        **(form if path.suffix == ".bin" else {}),
    }
    return given | {key.replace("_", "."): each for key, each in more.items()}


def run(path: Path, stored: Stored, **more: str) -> list[str]:
    """The texts that a run commits."""
    made = LocalRun(FilesConnector(), props(path, **more), stored)
    return [text_of(each.value) for each in made.until_idle()]


def text_of(value: object) -> str:
    """The field *text* of a record of any format."""
    row = value if isinstance(value, dict) else json.loads(value)  # pyright: ignore[reportArgumentType]
    return str(row["text"]).replace("\n", " ")


def texts(rows: Rows) -> list[str]:
    """The same of rows."""
    return [row["text"] for row in rows]


def planned(path: Path, stored: Stored, **more: str) -> tuple[LocalRun, SourceTask]:
    """A run whose first plan is made, and the task that has it."""
    made = LocalRun(FilesConnector(), props(path, **more), stored)
    made._connector.start(made._props)
    (task,) = made._tasks()
    return made, task


def sent_around(
    path: Path, stored: Stored, happens: Callable[[], object], *, polls: int = 2, **more: str
) -> list[str]:
    """The texts that a task commits when something *happens* after so many polls of its plan.

    What it complains about is for the next plan to judge.
    """
    made, task = planned(path, stored, **more)
    for _ in range(polls):
        made._commit(task, batches_of(task.poll()))
    happens()
    with suppress(RecordError, TaskFailedError):
        made._drain(task)
    return [text_of(each.value) for each in made.delivered]


def overwritten(path: Path, how: str) -> Callable[[], object]:
    """Puts the new rows in the place of the old ones."""
    content = WRITERS[path.name](NEW)
    if how == "in place":
        return lambda: path.write_bytes(content)
    other = path.with_name(".other")
    other.write_bytes(content)
    return lambda: other.rename(path)


@pytest.fixture
def path(tmp_path: Path, name: str) -> Path:
    """A file of the old rows."""
    made = tmp_path / name
    made.write_bytes(WRITERS[name](OLD))
    return made


@every_format
@pytest.mark.parametrize("how", ["in place", "renamed"])
@pytest.mark.parametrize("polls", [0, 2])
@pytest.mark.parametrize("policy", ["fail", "reread", "ignore"])
def test_one_that_is_overwritten_while_it_is_read_is_never_done(
    path: Path, how: str, polls: int, policy: str
):
    """Whether it was opened before or not; the next plan notices, and the policy decides."""
    stored: Stored = {}
    change = overwritten(path, how)

    sent = sent_around(path, stored, change, polls=polls, files_changed=policy)

    assert texts(OLD)[: 7 * polls] == sent[: 7 * polls]
    assert not any(offset.get("done") for offset in stored.values())
    if not polls:
        assert ([], texts(NEW)) == (sent, run(path, stored, files_changed=policy))
    elif policy == "fail":
        with pytest.raises(TaskFailedError, match=r"files\.changed=reread") as caught:
            run(path, stored)
        assert str(caught.value).startswith(f"{path}: ")
    else:
        again = run(path, stored, files_changed=policy)
        assert (texts(NEW) if policy == "reread" else []) == again
    assert [] == run(path, dict(stored), files_changed="ignore")


@every_format
def test_one_that_is_appended_to_while_it_is_read_goes_on(path: Path, name: str):
    """Nothing is lost and nothing twice, whatever files.follow says; also where a footer is at its end."""
    stored: Stored = {}

    def append() -> None:
        if name == "a.avro":
            with path.open("a+b") as file:
                fastavro.writer(file, SCHEMA, MORE)
        elif name == "a.jsonl.gz":
            path.write_bytes(path.read_bytes() + gzip.compress(jsonl(MORE)))
        else:
            path.write_bytes(WRITERS[name]([*OLD, *MORE]))

    sent = sent_around(path, stored, append)

    assert not any(offset.get("done") for offset in stored.values())
    assert texts([*OLD, *MORE]) == sent + run(path, stored, files_changed="fail")
    assert [True] == [offset["done"] for offset in stored.values()]


@every_format
@pytest.mark.parametrize("policy", ["fail", "ignore"])
@pytest.mark.parametrize("half_read", [False, True])
def test_one_that_is_removed_between_plan_and_reading_is_no_end_of_data(
    path: Path, policy: str, *, half_read: bool
):
    """Nothing of it is done; the policy decides about one of which records were sent."""
    stored: Stored = {}
    if half_read:
        LocalRun(FilesConnector(), props(path), stored, stop_after=9).until_idle()
    before = dict(stored)

    assert [] == sent_around(path, stored, path.unlink, polls=0, files_missing=policy)

    assert before == stored
    if half_read and policy == "fail":
        with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
            run(path, stored)
    else:
        assert [] == run(path, stored, files_missing=policy)
    path.write_bytes(WRITERS[path.name](OLD))
    # Another file of the same content, as far as anybody can tell.
    rest = run(path, {}, files_missing=policy)
    assert texts(OLD) == rest


@every_format
@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_one_that_is_removed_while_it_is_read_is_read_to_its_end(path: Path, policy: str):
    """The disk keeps it for who has it open; what has become of it is the next plan's to judge."""
    stored: Stored = {}

    sent = sent_around(path, stored, path.unlink, files_missing=policy)

    assert texts(OLD) == sent
    assert not any(offset.get("done") for offset in stored.values())
    if policy == "fail":
        with pytest.raises(TaskFailedError, match="vanished"):
            run(path, stored)
    else:
        assert [] == run(path, stored, files_missing=policy)


@every_format
def test_one_that_comes_late_and_sorts_before_all_others_is_read(path: Path, name: str):
    """While others are half read, after they are done, and after a restart; each once."""
    stored: Stored = {}
    late, later = path.with_name(f"A{name}"), path.with_name(f"0{name}")

    sent = sent_around(path, stored, lambda: late.write_bytes(WRITERS[name](MORE)))
    assert texts(OLD) == sent
    assert texts(MORE) == run(path, stored)
    later.write_bytes(WRITERS[name](NEW))

    assert texts(NEW) == run(path, stored)
    assert [] == run(path, stored)
    assert 3 == len(stored)


@pytest.mark.parametrize("name", ["a.jsonl"])
def test_one_that_comes_late_before_the_start_is_left(path: Path):
    """What files.start.after leaves out stays out, and what is behind it is read."""
    stored: Stored = {}
    start = {"files_start_after": str(path.with_name("B"))}
    run(path, stored, **start)
    path.with_name("A.jsonl").write_bytes(jsonl(NEW))
    path.with_name("C.jsonl").write_bytes(jsonl(MORE))

    assert texts(MORE) == run(path, stored, **start)
