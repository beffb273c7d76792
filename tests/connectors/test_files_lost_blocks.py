"""Avro files with a damaged record through the task loop: the rest of its block is one dead letter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import ErrorPolicy
from sources.avro_files import block, datum, header, long
from task.local_loop import Rounds

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
BLOCKS = 3


def content(damaged: int, codec: str) -> bytes:
    """Blocks of three numbers as strings; the second one of block *damaged* is longer than its block."""
    parts = [[datum("string", str(3 * number + n)) for n in range(3)] for number in range(BLOCKS)]
    parts[damaged][1] = long(1000)
    return header("string", codec) + b"".join(block(b"".join(part), 3, codec) for part in parts)


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("damaged", range(BLOCKS))
def test_wherever_it_is_killed_the_block_is_one_letter(tmp_path: Path, codec: str, damaged: int):
    """What is before and behind is sent once, the letter, too, and the file is done."""
    path = tmp_path / "a.avro"
    path.write_bytes(content(damaged, codec))
    lost = {3 * damaged + 1, 3 * damaged + 2}
    props = {
        "name": "c",
        "topic": "t",
        "files.path": str(tmp_path),
        "files.min.age.ms": "0",
        "files.batch.max.rows": "2",
    }

    for killed_at in range(1, 10):
        played = Rounds(FilesConnector, props, DEAD)
        played.play(killed_at=killed_at)
        played.play()

        good = [str(n).encode() for n in range(3 * BLOCKS) if n not in lost]
        assert (good, [None]) == (played.values("t"), played.values("dead"))
        (headers,) = [dict(each) for each in played.headers if each]
        reference = json.loads(headers["__connect.errors.source.reference"] or b"")
        assert (2, 2) == (reference["record"], reference["records"])
        assert str(path) == reference["object"]
        (offset,) = played.stored.values()
        assert (True, 9) == (offset["done"], offset["recordCount"])
