"""Avro files and packed files through the files connector."""

from __future__ import annotations

import bz2
import lzma
from pathlib import Path
from typing import Any

import cramjam
import pytest
import zstandard

from headrace.connect import ConfigError, ConnectError, SourceOffset, SourcePartition
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import Delivered, LocalRun
from sources.avro_files import avro_file, header

Stored = dict[SourcePartition, SourceOffset]
SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}],
}
ROWS: list[Any] = [{"id": n, "name": None if n % 3 else f"name {n}"} for n in range(10)]
PACKERS = {
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".sz": lambda data: bytes(cramjam.snappy.compress(data)),
    ".snappy": lambda data: bytes(cramjam.snappy.compress(data)),
    ".lz4": lambda data: bytes(cramjam.lz4.compress(data)),
    ".zst": zstandard.compress,
}


def local_run(
    folder: Path, stored: Stored, stop_after: int | None = None, **props: str
) -> LocalRun:
    """A run over *folder*."""
    settings = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0", **props}
    return LocalRun(FilesConnector(), settings, stored, stop_after=stop_after)


def run(folder: Path, stored: Stored, **more: object) -> list[Delivered]:
    """What a run over *folder* commits until it is idle."""
    return local_run(folder, stored, **more).until_idle()


@pytest.mark.parametrize("name", ["a.avro", "a.avro.zst"])
@pytest.mark.parametrize("codec", ["null", "snappy"])
def test_every_record_once_wherever_it_was_stopped(tmp_path: Path, name: str, codec: str):
    """Struct records with their schema; an offset names the block, and a finished file is done."""
    content = avro_file(SCHEMA, ROWS, codec=codec)
    (tmp_path / name).write_bytes(content if name == "a.avro" else zstandard.compress(content))
    partition = SourcePartition(filename=str(tmp_path / name))

    for cut in range(1, len(ROWS) + 1):
        stored: Stored = {}
        found = run(tmp_path, stored, stop_after=cut)
        assert cut == stored[partition]["recordCount"]
        found += run(tmp_path, stored)
        assert ROWS == [each.value for each in found]
        assert [] == run(tmp_path, stored)
        assert {"format": "avro", "anchor": len(content), "skip": 0, "done": True} == {
            key: stored[partition][key] for key in ("format", "anchor", "skip", "done")
        }


def test_a_file_without_records_is_done(tmp_path: Path):
    """It is not looked at again."""
    (tmp_path / "a.avro").write_bytes(header(SCHEMA))
    stored: Stored = {}

    assert [] == run(tmp_path, stored)
    assert [True] == [each["done"] for each in stored.values()]


@pytest.mark.parametrize("cut", [0, 3, 40, -30, -1])
def test_a_file_that_is_cut_off_fails_the_task(tmp_path: Path, cut: int):
    """What is before the cut is committed, and the file is not done."""
    content = avro_file(SCHEMA, ROWS)
    (tmp_path / "a.avro").write_bytes(content[: len(content) + cut if cut < 0 else cut])
    stored: Stored = {}
    halted = local_run(tmp_path, stored)

    with pytest.raises(ConnectError, match=r"a\.avro, .*byte \d+"):
        halted.until_idle()

    assert ROWS[: len(halted.delivered)] == [each.value for each in halted.delivered]
    assert not any(each.get("done") for each in stored.values())


@pytest.mark.parametrize("extension", PACKERS)
@pytest.mark.parametrize("named", [True, False])
def test_packed_lines_are_read_wherever_they_were_stopped(
    tmp_path: Path, extension: str, *, named: bool
):
    """By their extension, or by their first bytes when the name tells none."""
    lines = [f"line {n}" for n in range(9)]
    name = f"a.txt{extension}" if named else "a.txt"
    (tmp_path / name).write_bytes(PACKERS[extension]("\n".join(lines).encode()))

    for cut in range(1, len(lines)):
        stored: Stored = {}
        found = run(tmp_path, stored, stop_after=cut) + run(tmp_path, stored)
        assert lines == [each.value for each in found]


@pytest.mark.parametrize(
    "props", [{"files.compression": "none"}, {"files.format": "bytes", "files.compression": "auto"}]
)
def test_first_bytes_do_not_count_where_bytes_are_asked_for(tmp_path: Path, props: dict[str, str]):
    """A file is then read as it is."""
    packed = bz2.compress(b"a\n")
    (tmp_path / "a.txt").write_bytes(packed)

    assert [packed] == [
        each.value for each in run(tmp_path, {}, **{"files.format": "bytes", **props})
    ]


def test_what_cannot_be_split_is_refused():
    """Before anything is read."""
    for props in ({"files.format": "bytes"}, {"files.compression": "lz4"}):
        with pytest.raises(ConfigError, match=r"files\.split\.bytes"):
            FilesConfig.parse({"files.path": "a", "topic": "t", "files.split.bytes": "9", **props})
