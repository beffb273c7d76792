"""`headrace offsets`: what it prints, what it changes in a worker over HTTP, and how it ends."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from cli.conftest import Shell, Worker
from headrace.cli.offsets import with_stop
from headrace.cli.rest_client import WorkerError
from headrace.cli.worker_options import command_options
from headrace.connect.errors import RetriableError
from offsets.test_java_offsets_file import file_of

ALTERED = "offsets for this connector have been altered successfully"


def test_offsets_are_shown_as_a_table(shell: Shell, worker: Worker):
    """One line for each partition, sorted, under a heading."""
    worker.put(b=7, a=12345)

    assert [
        "partition     offset",
        '{"file":"a"}  {"at":12345}',
        '{"file":"b"}  {"at":7}',
    ] == shell.done("offsets", "show", "c").splitlines()


def test_offsets_are_shown_to_programs(shell: Shell, worker: Worker):
    """The worker's own answer."""
    worker.put(a=1)

    assert {"offsets": [{"partition": {"file": "a"}, "offset": {"at": 1}}]} == shell(
        "offsets", "show", "c", "--json"
    ).json


def test_lag_is_shown(shell: Shell, worker: Worker):
    """A dash where the connector cannot tell."""
    worker.put(a=1)

    assert [
        "partition     lag  offset",
        '{"file":"a"}  -    {"at":1}',
    ] == shell.done("offsets", "show", "c", "--lag").splitlines()
    assert [None] == [
        each["lag"] for each in shell("offsets", "show", "c", "--lag", "--json").json["lag"]
    ]


def test_no_offsets_are_a_sentence(shell: Shell):
    """And no empty table."""
    assert "Connector c has no offsets.\n" == shell.done("offsets", "show", "c")


def test_an_unknown_connector_is_reported_with_those_that_there_are(shell: Shell, worker: Worker):
    """In the worker's words, with exit code 1."""
    shown = f"headrace: Connector x/y not found. At {worker.url.rstrip('/')} there is the connector c.\n"
    assert shown == shell.failed("offsets", "show", "x/y")


def test_a_name_is_not_empty(shell: Shell):
    """A variable of a shell may be, and a path without the name is another one."""
    assert "name of the connector is empty" in shell.failed("offsets", "reset", "")


def test_one_offset_is_set(shell: Shell, worker: Worker):
    """Others stay; the worker's sentence is told."""
    worker.put(a=1, b=2)
    worker.stop()

    assert ALTERED in shell.done("offsets", "set", "c", '{"file":"a"}', '{"at":9}')
    assert {"a": 9, "b": 2} == worker.known()


def test_one_offset_is_forgotten(shell: Shell, worker: Worker):
    """By null."""
    worker.put(a=1, b=2)
    worker.stop()
    shell.done("offsets", "set", "c", '{"file":"a"}', "null")

    assert {"b": 2} == worker.known()


def test_offsets_of_a_running_connector_stay(shell: Shell, worker: Worker):
    """Exit code 1, with the command that stops it, and not the request that the worker tells of."""
    worker.put(a=1)
    shown = shell.failed("offsets", "set", "c", '{"file":"a"}', '{"at":9}')

    assert shown.startswith("headrace: The offsets of connector c can be changed only while")
    assert re.search(r"'headrace connectors stop --url http:\S+ c'", shown)
    assert "PUT" not in shown
    assert {"a": 1} == worker.known()


def test_the_command_that_stops_a_connector_calls_the_worker_that_was_called():
    """A worker with another address, and with users."""
    error = WorkerError(
        "Connectors must be in the STOPPED state before their offsets are modified."
    )
    named = command_options("http://127.0.0.1:8084", "a user")

    assert "'headrace connectors stop --url http://127.0.0.1:8084 --user 'a user' c'" in str(
        with_stop(error, "c", named)
    )
    assert "stop c'" in str(with_stop(error, "c", command_options("http://127.0.0.1:8083", None)))


@pytest.mark.parametrize("given", ["{", "7", "null", "[]"])
def test_a_partition_that_is_no_object_is_wrong_usage(shell: Shell, given: str):
    """Exit code 2, before anything is asked."""
    assert "PARTITION" in shell.failed("offsets", "set", "c", given, "{}", code=2)


@pytest.mark.parametrize("depth", [200, 1_000, 100_000])
@pytest.mark.parametrize("at", [0, 1])
def test_json_that_is_nested_too_deeply_is_wrong_usage(shell: Shell, at: int, depth: int):
    """In the same words as in files and requests, however deep it is."""
    given = ['{"file":"a"}', '{"at":9}']
    given[at] = '{"a":' * depth + "1" + "}" * depth
    shown = shell.failed("offsets", "set", "c", *given, code=2)
    assert "It is nested deeper than 100 levels." in shown


def test_json_whose_quotes_the_shell_has_removed_is_explained(shell: Shell):
    """What reaches the command is not what was typed."""
    shown = shell.failed("offsets", "set", "c", '{"file":"a"}', "{at:1}", code=2)
    assert "{at:1} is not JSON" in shown
    assert """in single quotes: '{"at": 7}'.""" in shown


def test_a_placeholder_of_a_command_is_told_with_the_key_of_its_connector(shell: Shell):
    """The quotes of the shell were right."""
    shown = shell.failed("offsets", "set", "c", '{"file":"a"}', '{"offset":LAST}', code=2)
    assert """Give a number in place of LAST: '{"offset": 7}'.""" in shown
    assert "single quotes" not in shown


def test_a_dry_run_changes_nothing(shell: Shell, worker: Worker):
    """It tells what would change, also while the connector runs."""
    worker.put(a=1)
    shown = shell.done("offsets", "set", "c", '{"file":"a"}', '{"at":9}', "--dry-run")

    assert 'Dry run: these offsets would change: {"file":"a"} from {"at":1} to {"at":9}' in shown
    assert "would change" in shell.done("offsets", "reset", "c", "--dry-run")
    assert {"a": 1} == worker.known()
    assert [] == shell("offsets", "history", "c", "--json").json["history"]


def test_resetting_forgets_all(shell: Shell, worker: Worker):
    """The worker's sentence."""
    worker.put(a=1, b=2)
    worker.stop()

    assert "reset successfully" in shell.done("offsets", "reset", "c")
    assert {} == worker.known()


def test_history_reports_who_and_what(shell: Shell, worker: Worker):
    """The newest first; one change with its offsets before and after."""
    worker.put(a=1)
    worker.stop()
    shell.done("offsets", "set", "c", '{"file":"a"}', '{"at":9}')
    shell.done("offsets", "reset", "c")
    heading, newest, oldest = shell.done("offsets", "history", "c").splitlines()

    assert "change  when                       who        what   partitions" == heading
    assert "2       2023-11-14 22:13:20+00:00  127.0.0.1  reset  1" == newest
    assert "1       2023-11-14 22:13:20+00:00  127.0.0.1  alter  1" == oldest
    assert (
        "Change 1: alter, 2023-11-14 22:13:20+00:00 by 127.0.0.1\n\n"
        "partition     before    after\n"
        '{"file":"a"}  {"at":1}  {"at":9}\n' == shell.done("offsets", "history", "c", 1)
    )
    one = shell("offsets", "history", "c", 1, "--json").json
    assert [{"partition": {"file": "a"}, "before": {"at": 1}, "after": {"at": 9}}] == one["offsets"]


def test_history_outlives_its_connector(shell: Shell, worker: Worker):
    """A name that never was a connector's has none."""
    worker.put(a=1)
    worker.stop()
    shell.done("offsets", "reset", "c")
    shell.done("connectors", "delete", "c")

    shown = shell.done("offsets", "history", "c").splitlines()
    assert (
        "1       2023-11-14 22:13:20+00:00  127.0.0.1  reset, of a deleted connector  1" == shown[1]
    )
    (kept,) = shell("offsets", "history", "c", "--json").json["history"]
    assert kept["of_deleted"]
    shown = (
        f"headrace: Connector d not found. At {worker.url.rstrip('/')} there are no connectors.\n"
    )
    assert shown == shell.failed("offsets", "history", "d")


def test_the_last_change_is_undone(shell: Shell, worker: Worker):
    """And the undoing itself by its number."""
    worker.put(a=1)
    worker.stop()
    shell.done("offsets", "reset", "c")

    assert "restored successfully" in shell.done("offsets", "undo", "c")
    assert {"a": 1} == worker.known()
    shell.done("offsets", "undo", "c", 2)
    assert {} == worker.known()
    assert "undo of 2" in shell.done("offsets", "history", "c")


def test_undoing_is_tried(shell: Shell, worker: Worker):
    """A dry run puts nothing back."""
    worker.put(a=1)
    worker.stop()
    shell.done("offsets", "reset", "c")
    shown = shell.done("offsets", "undo", "c", "--dry-run")

    assert 'from null to {"at":1}' in shown
    assert {} == worker.known()


def test_undoing_what_has_moved_has_to_be_forced(shell: Shell, worker: Worker):
    """The refusal shows what would be sent again."""
    worker.put(a=1)
    worker.stop()
    shell.done("offsets", "set", "c", '{"file":"a"}', '{"at":5}')
    worker.put(a=8)

    assert 'is now at {"at":8}' in shell.failed("offsets", "undo", "c")
    shell.done("offsets", "undo", "c", "--force")
    assert {"a": 1} == worker.known()


def test_a_change_that_failed_is_not_undone(shell: Shell, worker: Worker):
    """It is shown as one that is not done, and the one before it is the last."""
    worker.put(a=1)
    worker.stop()
    shell.done("offsets", "set", "c", '{"file":"a"}', '{"at":2}')
    worker.kept.faults.at = "before commit"
    worker.kept.faults.error = lambda: RetriableError("away")
    shell.failed("offsets", "set", "c", '{"file":"a"}', '{"at":3}')

    assert "alter, not done" in shell.done("offsets", "history", "c")
    shell.done("offsets", "undo", "c")
    assert {"a": 1} == worker.known()


def test_nothing_to_undo_is_reported(shell: Shell):
    """With exit code 1."""
    assert "no change that can be undone" in shell.failed("offsets", "undo", "c")
    assert "has no change 7" in shell.failed("offsets", "history", "c", 7)


def test_an_export_is_imported(shell: Shell, worker: Worker, tmp_path: Path):
    """A file brings back what was there, and leaves other partitions alone."""
    worker.put(a=1, b=2)
    worker.stop()
    file = tmp_path / "c.json"
    shown = shell.done("offsets", "export", "c", file)
    worker.put(a=5, d=6)
    shell.done("offsets", "import", "c", file)

    assert f"2 offsets of connector c are in {file}.\n" == shown
    assert {"a": 1, "b": 2, "d": 6} == worker.known()
    assert f"{file} already exists" in shell.failed("offsets", "export", "c", file)


def test_an_import_replaces(shell: Shell, worker: Worker, tmp_path: Path):
    """In one change, which one undo takes back."""
    worker.put(a=1)
    worker.stop()
    file = tmp_path / "c.json"
    shell.done("offsets", "export", "c", file)
    worker.put(a=5, d=6)
    shell.done("offsets", "import", "c", file, "--replace")

    assert {"a": 1} == worker.known()
    shell.done("offsets", "undo", "c")
    assert {"a": 5, "d": 6} == worker.known()


def test_an_import_of_nothing_is_reported(shell: Shell, worker: Worker, tmp_path: Path):
    """It would change nothing, which is hardly what was meant."""
    worker.stop()
    file = tmp_path / "c.json"
    shell.done("offsets", "export", "c", file)

    shown = f"headrace: {file} has no offsets, so there is nothing to change: "
    assert f"{shown}'headrace offsets reset' deletes all.\n" == shell.failed(
        "offsets", "import", "c", file
    )
    assert f"{shown}connector c has none, either.\n" == shell.failed(
        "offsets", "import", "c", file, "--replace"
    )


def test_files_are_the_standard_streams(
    shell: Shell, worker: Worker, monkeypatch: pytest.MonkeyPatch
):
    """An export is printed; - is read from the input."""
    worker.put(a=1)
    worker.stop()
    printed = shell.done("offsets", "export", "c")
    worker.put(a=4)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(printed.encode())))
    shell.done("offsets", "import", "c", "-")

    assert {"a": 1} == worker.known()


def test_a_file_of_a_java_worker_is_imported(shell: Shell, worker: Worker, tmp_path: Path):
    """The offsets of one of its connectors, which has to be named where it has another name."""
    file = tmp_path / "connect.offsets"
    file.write_bytes(file_of(b'["local-file",{"filename":"a"}]', b'{"position":7}'))
    worker.stop()

    assert "It has no offsets of connector c" in shell.failed("offsets", "import", "c", file)
    shell.done("offsets", "import", "c", file, "--of", "local-file")
    assert shell.done("offsets", "diff", "c", "--file", file, "--of", "local-file") == (
        f"The offsets of c and {file} are the same.\n"
    )
    assert [{"position": 7}] == list(worker.kept.known().values())


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"", "It is not JSON"),
        (b"[" * 100_000, "It is nested deeper than 100 levels"),
        (b"[" * 1_000 + b"]" * 1_000, "It is nested deeper than 100 levels"),
        (b"[]", "the array 'offsets'"),
        (b'{"offsets":[{"partition":1,"offset":null}]}', "not an object"),
        (b"\xac\xed\x00\x05", "in the middle of the offsets"),
        (b"\xff", "It is not UTF-8"),
    ],
)
def test_a_file_without_offsets_is_reported(
    shell: Shell, tmp_path: Path, content: bytes, shown: str
):
    """By its name and what is wrong with it."""
    file = tmp_path / "c.json"
    file.write_bytes(content)

    assert f"headrace: {file}: " in shell.failed("offsets", "import", "c", file)
    assert shown in shell.failed("offsets", "import", "c", file)


def test_a_file_that_is_not_there_is_reported(shell: Shell, tmp_path: Path):
    """By its name."""
    file = tmp_path / "no"

    assert f"headrace: {file} cannot be read: No such file or directory.\n" == shell.failed(
        "offsets", "import", "c", file
    )


def test_offsets_are_compared_with_a_file(shell: Shell, worker: Worker, tmp_path: Path):
    """Only what differs, a missing offset as a dash; the exit code says so if it is asked to."""
    worker.put(a=1, b=2)
    file = tmp_path / "c.json"
    shell.done("offsets", "export", "c", file)
    worker.put(b=3, d=4)
    shown = shell("offsets", "diff", "c", "--file", file, "--exit-code")

    assert 1 == shown.code
    assert [
        ['{"file":"b"}', '{"at":3}', '{"at":2}'],
        ['{"file":"d"}', '{"at":4}', "-"],
    ] == [line.split() for line in shown.out.splitlines()[1:]]
    assert shell("offsets", "diff", "c", "--file", file, "--json").json == {
        "differences": [
            {"partition": {"file": "b"}, "left": {"at": 3}, "right": {"at": 2}},
            {"partition": {"file": "d"}, "left": {"at": 4}, "right": None},
        ]
    }


def test_offsets_of_two_connectors_are_compared(shell: Shell, worker: Worker, tmp_path: Path):
    """True and 1 are not the same, although Python has them equal."""
    for name, at in (("d", True), ("e", 1)):
        file = tmp_path / f"{name}.json"
        config = {"connector.class": "doubles.puppets:PlannedPuppet", "tasks.max": "1"}
        offsets = [{"partition": {"file": "a"}, "offset": {"at": at}}]
        body = {"name": name, "config": config, "initial_offsets": offsets}
        file.write_text(json.dumps(body))
        shell.done("connectors", "create", file)

    assert "are the same" in shell.done("offsets", "diff", "d", "d", "--exit-code")
    assert 'true}  {"at":1}' in shell.done("offsets", "diff", "d", "e")
    assert "another connector" in shell.failed("offsets", "diff", "d", code=2)
