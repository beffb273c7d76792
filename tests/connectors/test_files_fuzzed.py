"""Damaged files in the task loop that passes over bad records: what is sent and the dead letters are all there is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import ErrorPolicy
from sources.fuzzing import DAMAGES, Seen, seen_in
from sources.test_fuzz import whole_of
from task.local_loop import Rounds

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
NAMES = {
    "jsonl": "a.jsonl",
    "lines": "a.txt",
    "csv": "a.csv",
    "bytes": "a.bin",
    "avro null": "a.avro",
    "avro deflate": "a.avro",
    "parquet": "a.parquet",
    "gzip": "a.jsonl.gz",
    "gzip csv": "a.csv.gz",
    "zstd": "a.jsonl.zst",
}
_EXAMPLES = 3


def played(folder: Path, name: str) -> tuple[Rounds, str | None]:
    """What comes of the file, and the error that ends it, if one does; it is read again after that, in vain."""
    form = {"files.format": "bytes", "files.bytes.per.record": "50"} if name == "bytes" else {}
    rounds = Rounds(
        FilesConnector,
        {
            "name": "c",
            "topic": "t",
            "files.path": str(folder / NAMES[name]),
            "files.min.age.ms": "0",
            "files.batch.max.rows": "5",
            "files.batch.max.bytes": "4096",
            "files.max.line.bytes": "4096",
            **form,
        },
        DEAD,
        value_converter="json",
    )
    try:
        rounds.play()
    except TaskFailedError as error:
        before = (len(rounds.values("t")), len(rounds.values("dead")), dict(rounds.stored))
        with pytest.raises(TaskFailedError):
            rounds.play()
        after = (len(rounds.values("t")), len(rounds.values("dead")), dict(rounds.stored))
        assert before == after, "nothing comes twice"
        return rounds, str(error)
    return rounds, None


def check(rounds: Rounds, failure: str | None, found: Seen, path: Path) -> None:
    """Assert that records and letters are what the format alone *found*, and that the offset says so.

    Where nothing can be delimited any more, the rest is one letter, or the task fails.
    """
    offsets = list(rounds.stored.values())
    rest = sum("quarantined" in each for each in offsets)
    good, bad = len(found.records), found.letters
    assert (good, bad + rest) == (len(rounds.values("t")), len(rounds.values("dead")))
    assert bad + rest == rounds.tolerated
    assert (found.failure is not None) == (failure is not None or rest == 1), found.failure
    assert len(found.pieces) == sum(int(str(each["recordCount"])) for each in offsets)
    # An empty file has no records, and is done as soon as it is planned.
    assert (found.failure is None) == any(each.get("done") for each in offsets)
    assert failure is None or str(path) in failure


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_records_and_dead_letters_are_all_there_is(
    tmp_path: Path, name: str, damage: Callable[[bytes, random.Random], bytes]
):
    """In their places, and each once; nothing is silently left out."""
    whole, _ = whole_of(name)
    chance = random.Random(f"{name} {damage.__name__}")
    for number in range(_EXAMPLES):
        content = damage(whole.content, chance)
        path = tmp_path / str(number) / NAMES[name]
        path.parent.mkdir()
        path.write_bytes(content)

        rounds, failure = played(path.parent, name)

        check(rounds, failure, seen_in(whole, content), path)
