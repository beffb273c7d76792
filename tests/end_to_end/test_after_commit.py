"""Files that are deleted once a real broker has their records, and one that is put in quarantine."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from end_to_end.live import Life
from end_to_end.test_dead_letters import tolerant
from headrace.observe.events import MicroBatchEnded
from headrace.testing.judge import committed_records

pytestmark = pytest.mark.broker


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots that passes JSON on."""
    (tmp_path / "in").mkdir()
    props = {"value.converter": "json", "value.converter.schemas.enable": "false"}
    return Life(bootstrap, tmp_path, worker=props)


@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_whole_files_go_and_a_damaged_one_stays(life: Life, exactly_once: str) -> None:
    """In one run; the next one reads nothing of either, and what comes under an old name is new."""
    life.worker["exactly.once.source.support"] = exactly_once
    folder = life.folder / "in"
    lines = [b'{"n":%d}' % n for n in range(500)]
    (folder / "whole.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    damaged = folder / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(b'"before"\n') + gzip.compress(b'"behind"\n')[:12])
    dead = f"{life.next_name()}-dead"
    topic = life.add(
        "files",
        files_path=str(folder),
        files_min_age_ms="0",
        files_after_commit="delete",
    )
    life.connectors[0] |= tolerant(dead)

    assert {} == life.run_once()
    assert ["damaged.jsonl.gz"] == [path.name for path in folder.iterdir()]
    (folder / "whole.jsonl").write_bytes(b"500\n")
    assert {} == life.run_once()

    expected = [line.decode() for line in lines] + ['"before"', "500"]
    assert sorted(expected) == sorted(life.values(topic))
    assert ["damaged.jsonl.gz"] == [path.name for path in folder.iterdir()]
    (letter,) = committed_records(life.bootstrap, dead)
    told = {key.removeprefix("__connect.errors."): value for key, value in letter.headers}
    reference = json.loads(told["source.reference"])
    assert (None, str(damaged), True) == (letter.value, reference["object"], reference["rest"])
    assert "cut off" in reference["sourceOffset"]["quarantined"]
    heard = [each for each in life.heard(MicroBatchEnded) if isinstance(each, MicroBatchEnded)]
    assert [1] == [each.quarantined for each in heard if each.quarantined]
