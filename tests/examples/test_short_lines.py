"""The transformation of the docs: both of its ways do the same, and it runs with the configurations beside it."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import once
import pyarrow as pa
import pytest
import short_lines

from headrace.connect import RecordError, SourceBatch, SourcePartition, SourceRecord
from headrace.testing.judge import committed_records

LINES = ["", "short", "a line of more than forty characters, which is cut", "\u2603" * 41]
PARTITION = SourcePartition(filename="f")
PAGE = (once.EXAMPLES.parent / "docs" / "transforms.md").read_text()


def batch(lines: list[str | None]) -> SourceBatch:
    """Some lines."""
    values = pa.array(lines, pa.utf8())
    return SourceBatch(topic="t", values=values, source_partition=PARTITION, offsets=None)


def record(line: object) -> SourceRecord:
    """One line."""
    return SourceRecord(
        topic="t", value=line, source_partition=PARTITION, source_offset={"position": 1}
    )


def test_batches_become_what_records_become():
    """Cut behind 40 characters, also those that take several bytes."""
    transform = short_lines.ShortenTransform()
    transform.configure({"most.characters": "40"})

    [changed] = transform.apply_batch(batch([*LINES])) or ()

    assert [transform.apply(record(each)).value for each in LINES] == changed.values.to_pylist()
    assert 40 == len(changed.values[3].as_py())


def test_what_is_no_text_is_refused():
    """One by one, so that the record is known."""
    transform = short_lines.ShortenTransform()
    transform.configure({"most.characters": "40"})

    assert transform.apply_batch(batch(["a", None])) is None
    assert transform.apply_batch(replace(batch(["a"]), values=pa.array([1]))) is None
    with pytest.raises(RecordError, match="Only text"):
        transform.apply(record(None))


def test_the_predicate_tells_the_same_of_batches():
    """A null is not empty."""
    predicate = short_lines.IsEmptyPredicate()
    lines = [*LINES, None]

    told = predicate.test_batch(batch(lines))

    assert told is not None
    assert [predicate.test(record(each)) for each in lines] == told.to_pylist()


@pytest.mark.broker
def test_lines_are_cut_and_empty_ones_dropped(bootstrap: str, tmp_path: Path):
    """Also when the last ones are: they are not read again."""
    topic = f"lines-{uuid.uuid4().hex[:8]}"
    (tmp_path / "lines.txt").write_text("\n".join([*LINES, "", ""]) + "\n")

    for _ in range(2):
        once.run_once(
            bootstrap,
            tmp_path,
            topic,
            worker="short_lines_worker.json",
            connector="short_lines.json",
            place={"file": "lines.txt"},
            slots=1,
        )

    found = [(each.value or b"").decode() for each in committed_records(bootstrap, topic)]
    assert [each[:40] for each in LINES if each] == found


def test_the_page_has_the_example():
    """Its code and its configurations, word for word."""
    code = (once.EXAMPLES / "short_lines.py").read_text()
    configs = [
        json.loads((once.EXAMPLES / name).read_text())
        for name in ("short_lines.json", "short_lines_worker.json")
    ]
    blocks = [each.partition("\n") for each in PAGE.split("```")[1::2]]

    assert code.partition("\n\n\n")[2] in [text for kind, _, text in blocks if kind == "python"]
    shown = [json.loads(text) for kind, _, text in blocks if kind == "json"]
    assert all(each in shown for each in configs)
