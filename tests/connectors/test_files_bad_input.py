"""Bad input: each kind says which file, where and what to do, and nothing before it is lost."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from headrace.connect import (
    ConfigError,
    ConnectError,
    RecordError,
    SourceOffset,
    SourcePartition,
)
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun

GZ = gzip.compress(b'{"a":1}\n' * 3)


def local_run(
    path: Path | str, stored: dict[SourcePartition, SourceOffset], **props: str
) -> LocalRun:
    """A run over *path*."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    return LocalRun(
        FilesConnector(),
        given | {key.replace("_", "."): each for key, each in props.items()},
        stored,
    )


@pytest.mark.parametrize(
    ("name", "content", "good", "position", "words"),
    [
        ("a.jsonl", b'{}\nnot json\n{}\n', 1, "byte 3 (record 2)", "not one JSON document"),
        ("a.jsonl", b'{}\n{} {}\n', 1, "byte 3 (record 2)", "trailing characters"),
        ("a.jsonl", b'[1\n2]\n3 4\n', 0, "byte 0 (record 1)", "not one JSON document"),
        ("a.jsonl", b'{"a":"\xff"}\n', 0, "byte 0 (record 1)", "Byte 6 is 0xff, which is not UTF-8"),
        ("a.jsonl", b'{}\n\0\n', 1, "byte 3 (record 2)", "not one JSON document"),
        ("a.jsonl", b"\xff\xfe{\0}\0", 0, "byte 0", "UTF-16 (little endian)"),
        ("a.jsonl", b"\xfe\xff\0{\0}", 0, "byte 0", "UTF-16 (big endian)"),
        ("a.jsonl", b"{}\n" + b"[" * 9000 + b"]" * 9000, 1, "byte 3 (record 2)", "nested too deeply"),
        ("a.jsonl", b'{}\n"' + b"x" * 2_000_000 + b'"\n{}', 1, "byte 3 (record 2)", "longer than 1048576 bytes"),
        ("a.jsonl", b'{}\n{"a":', 1, "byte 3 (record 2)", "truncated"),
        ("a.txt", b"a\n\xe4\n", 1, "byte 2 (record 2)", "Byte 2 is 0xe4, which is not UTF-8"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", 1, "byte 8 (record 2)", "has 3 fields, but 2 are expected"),
        ("a.csv", b"a,b\n1,2\n1\n", 1, "byte 8 (record 2)", "has 1 field, but 2 are expected"),
        ("a.csv", b"a,b\n1,2\n1,\xe4\n", 1, "byte 8 (record 2)", "Byte 10 is 0xe4"),
        ("a.csv", b"a,b\n1,2\n1,\0\n", 1, "byte 8 (record 2)", "NUL"),
        ("a.csv", b'a,b\n1,2\n"1,2\n', 1, "byte 8 (record 2)", "never closed"),
        ("a.csv", b'a,b\n1,2\n"1"x,2\n', 1, "byte 8 (record 2)", "not CSV of the configured dialect"),
        ("a.csv", b"a,b\n1,2\r3,4\r5,6\n", 0, "byte 4 (record 1)", "carriage return outside of quotes"),
        ("a.txt", b"\xe4\n", 0, "byte 0 (record 1)", "or say its encoding where the connector has a setting"),
        ("a.csv", b"a,a\n1,2\n", 0, "byte 0 (record 1)", "Two fields have the name 'a'"),
        ("a.jsonl.gz", GZ[:-1], 3, "byte 24 of the unpacked text", "cut off"),
        ("a.jsonl.gz", b"", 0, "byte 0 of the unpacked text", "cut off"),
        ("a.jsonl.gz", b"{}\n", 0, "byte 0 of the unpacked text", "not sound gzip data"),
        ("a.jsonl.gz", GZ + b"more", 3, "byte 24 of the unpacked text", "not sound gzip data"),
        ("a.jsonl.zst", b"{}\n", 0, "byte 0 of the unpacked text", "not sound zstd data"),
    ],
)  # fmt: skip
def test_bad_content_names_file_and_place(  # noqa: PLR0917
    tmp_path: Path, name: str, content: bytes, good: int, position: str, words: str
) -> None:
    """The message has file, position, reason and advice; records before it are committed, none behind."""
    path = tmp_path / name
    path.write_bytes(content)
    stored: dict[SourcePartition, SourceOffset] = {}
    run = local_run(path, stored)

    with pytest.raises(ConnectError) as caught:
        run.until_idle()

    told = str(caught.value)
    assert told.startswith(f"{path}, {position}: ")
    assert words in told
    assert told.endswith(".")
    assert good == len(run.delivered)
    assert [good] * bool(good) == [offset["recordCount"] for offset in stored.values()]
    assert not any(offset.get("done") for offset in stored.values())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing", "does not exist"),
        ("missing/*.jsonl", r"/missing: This folder does not exist\. Create it"),
        ("missing/**", r"/missing: This folder does not exist\. Create it"),
        ("file.txt/*", "cannot be read: Not a directory"),
        ("file.txt/x", "cannot be read: Not a directory"),
        ("pipe", "neither a folder nor a regular file"),
        ("odd", "extension does not identify the format"),
    ],
)
def test_a_path_that_cannot_be_read_fails(tmp_path: Path, path: str, words: str) -> None:
    """What cannot be listed is an error that names the path, not an empty plan."""
    (tmp_path / "file.txt").touch()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "x.bin").write_text("x")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ConnectError, match=words) as caught:
        local_run(tmp_path / path, {}).until_idle()

    assert str(tmp_path) in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_fails(tmp_path: Path) -> None:
    """A folder that may not be read is an error."""
    tmp_path.chmod(0)
    try:
        with pytest.raises(ConnectError, match="cannot be read: Permission denied"):
            local_run(tmp_path, {}).until_idle()
    finally:
        tmp_path.chmod(0o700)


def test_a_glob_without_matches_is_nothing_yet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Files may come later; the log names the pattern, once and not at each plan."""
    run = local_run(tmp_path / "*.jsonl", {})
    run._connector.start(run._props)

    for _ in range(3):
        assert [] == list(run._tasks())

    (told,) = caplog.messages
    assert f"{tmp_path}/*.jsonl: No file matches" in told


def test_a_glob_whose_files_are_gone_is_nothing_to_tell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They were read, and deleted or moved then: in this run, or in one before."""
    path = tmp_path / "a.jsonl"
    path.write_text("1\n")
    run = local_run(tmp_path / "*.jsonl", {})
    run._connector.start(run._props)
    list(run._tasks())
    path.unlink()
    list(run._tasks())
    known: dict[SourcePartition, SourceOffset] = {
        SourcePartition(filename=str(path)): {"recordCount": 1, "done": True}
    }
    local_run(tmp_path / "*.jsonl", known).until_idle()

    assert [] == caplog.messages


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_what_is_not_packed_at_all_is_told_about_the_setting(tmp_path: Path, name: str) -> None:
    """Damage in the middle is another matter."""
    (tmp_path / name).write_bytes(b"{}\n")
    with pytest.raises(ConnectError, match=r"correct files\.compression"):
        local_run(tmp_path, {}).until_idle()


def test_damage_is_not_taken_for_another_packing(tmp_path: Path) -> None:
    """The advice is then to bring a whole file."""
    (tmp_path / "a.jsonl.gz").write_bytes(GZ[:12] + bytes(8) + GZ[20:])
    with pytest.raises(ConnectError, match="not sound gzip") as caught:
        local_run(tmp_path, {}).until_idle()

    assert "with a whole one" in str(caught.value)


def test_a_long_line_names_the_setting(tmp_path: Path) -> None:
    """The one of this connector."""
    (tmp_path / "a.txt").write_text("x" * 100 + "\n")
    with pytest.raises(ConnectError, match=r"raise files\.max\.line\.bytes\."):
        local_run(tmp_path, {}, files_max_line_bytes="9").until_idle()


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"files.split.bytes": "10", "files.format": "csv"}, "files.split.bytes"),
        ({"files.split.bytes": "10", "files.format": "bytes"}, "files.split.bytes"),
        ({"files.split.bytes": "10", "files.compression": "gzip"}, "files.split.bytes"),
        ({"files.start.after": "a.jsonl"}, "files.start.after"),
        ({"files.start.after": "s3://bucket/a"}, "files.start.after"),
        ({"files.start.after": "/x/../x/a"}, "files.start.after"),
        ({"csv.delimiter": "ab"}, "csv.delimiter"),
        ({"csv.delimiter": '"'}, "csv.quote"),
        ({"csv.types": "a:datetime"}, "csv.types"),
        ({"csv.comment": "##"}, "csv.comment"),
        ({"csv.comment": " "}, "csv.comment"),
        ({"csv.comment": ","}, "csv.quote"),
        ({"csv.skip.lines": "-1"}, "csv.skip.lines"),
        ({"files.encoding": "utf-16"}, "files.encoding"),
        ({"files.encoding": "latin-1", "files.format": "avro"}, "files.encoding"),
        (
            {"files.encoding": "latin-1", "files.max.line.bytes": "268435457"},
            "files.max.line.bytes",
        ),
        (
            {"files.split.bytes": "10", "files.format": "csv", "csv.quote": "none"}
            | {"csv.names": "a", "csv.header": "false", "csv.skip.lines": "1"},
            "files.split.bytes",
        ),
        ({"files.path": ""}, "files.path"),
    ],
)
def test_a_wrong_configuration_is_refused(props: dict[str, str], key: str) -> None:
    """Validation names the key."""
    with pytest.raises(ConfigError) as caught:
        FilesConnector().start({"files.path": "/x", "topic": "t", **props})

    assert [key] == [name for name, _ in caught.value.problems]


def test_a_csv_file_may_have_neither_quotes_nor_escapes() -> None:
    """Two characters that are not there are not the same one."""
    props = {"files.path": "/x", "topic": "t", "csv.quote": "none"}

    assert [] == list(FilesConnector().problems(props))


def test_a_bad_row_counts_when_reading_goes_on(tmp_path: Path) -> None:
    """After a refused line the rest is read, with the place and the number that it has in the file."""
    (tmp_path / "a.jsonl").write_bytes(b"1\nx\n3\n")
    run = local_run(tmp_path, {})
    run._connector.start(run._props)
    (task,) = run._tasks()

    first = task.poll()
    with pytest.raises(ConnectError):
        task.poll()
    rest = task.poll()
    task.stop()

    assert ["1"] == [value for batch in first for value in batch.values.to_pylist()]
    assert ["3"] == [value for batch in rest for value in batch.values.to_pylist()]
    assert 3 == rest[-1].offset_at(-1)["recordCount"]
    assert rest[-1].offset_at(-1)["done"]


def test_behind_damage_nothing_is_guessed(tmp_path: Path) -> None:
    """Where records cannot be delimited any more, the file is left and is not marked as done."""
    (tmp_path / "a.jsonl.gz").write_bytes(GZ[:-1])
    run = local_run(tmp_path, {})
    run._connector.start(run._props)
    (task,) = run._tasks()
    task.poll()

    with pytest.raises(RecordError, match="cut off") as caught:
        task.poll()
    bad = caught.value.bad
    assert bad
    assert bad.quarantines
    assert task.poll() is None
    assert not task.update_offsets({bad.source_partition: bad.source_offset})
    task.stop()
