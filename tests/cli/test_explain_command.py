"""`headrace explain`: what is shown, by which exit code, and that nothing is written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from doubles.puppets import Puppet, puppet
from headrace.cli.explain import explain, explained_lines
from headrace.connect import ConfigError, ConnectError, Explained, SourcePartition, TaskFailedError
from headrace.storage.sqlite import SqliteStorage

WORKER = {
    "bootstrap.servers": "127.0.0.1:9",
    "key.converter": "string",
    "value.converter": "string",
    "state.file": "state.db",
    "headrace.start.deadline.ms": "200",
}
AT_LEAST_ONCE = {"exactly.once.source.support": "disabled"}


@dataclass
class Scene:
    """Two files, and the configurations that read them."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "in").mkdir()
        for name in ("a.txt", "b.txt"):
            (self.folder / "in" / name).write_text("one\n")

    def explained(
        self, worker: dict[str, str] | None = None, *options: str, **connector: str
    ) -> Result:
        """What the command does."""
        named = {key.replace("_", "."): value for key, value in connector.items()}
        props = {
            "name": "c",
            "connector.class": "files",
            "topic": "t",
            "files.path": str(self.folder / "in"),
            "files.min.age.ms": "0",
            **named,
        }
        (self.folder / "worker.json").write_text(json.dumps({**WORKER, **(worker or {})}))
        (self.folder / "c.json").write_text(json.dumps(props))
        paths = [str(self.folder / name) for name in ("worker.json", "c.json")]
        return CliRunner().invoke(explain, [*options, *paths], standalone_mode=False)

    def names(self) -> set[str]:
        """What lies in the folder."""
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Two files."""
    return Scene(tmp_path)


def test_what_would_be_read_is_a_table(scene: Scene):
    """Also without a broker and a state file, neither of which is made."""
    result = scene.explained(tasks_max="2")

    assert 0 == result.return_value
    summary, _, heading, *rows = result.stdout.splitlines()
    assert "c would read 2 of 2 objects, 8 bytes, in 2 of 2 slots." == summary
    assert ["slot", "bytes", "topic", "partition", "format", "object"] == heading.split()
    assert ["0", "4", "t", "-", "lines", f"{scene.folder}/in/a.txt"] == rows[0].split()
    assert {"in", "worker.json", "c.json"} == scene.names()


def test_programs_get_json(scene: Scene):
    """Every object with all that is known of it, and whether the connector would fail."""
    result = scene.explained({}, "--json", tasks_max="2", files_exclude="b*")

    assert 0 == result.return_value
    answer = json.loads(result.stdout)
    assert ("c", 2, False) == (answer["connector"], answer["slots"], answer["fails"])
    read, left = answer["objects"]
    assert {
        "name": f"{scene.folder}/in/a.txt",
        "slots": [0],
        "topic": "t",
        "partition": None,
        "form": "lines",
        "size": 4,
        "reason": None,
        "fails": False,
    } == read
    assert f"{scene.folder}/in/b.txt" == left["name"]
    assert [] == left["slots"]
    assert left["reason"]


def test_a_broker_that_is_away_is_reported(scene: Scene):
    """And what is shown is as if nothing had been sent."""
    result = scene.explained({"group.id": "g"})

    assert 0 == result.return_value
    assert "Kafka was not reached" in result.stderr
    assert "would read 2 of 2 objects" in result.stdout


def test_offsets_in_a_group_are_asked_for_where_the_tasks_write(scene: Scene):
    """Whatever the worker has; a cluster that is away is reported."""
    modules = {"plugin.modules": "doubles.copying_connector", **AT_LEAST_ONCE}
    puppet("c", Puppet())
    copying = "doubles.copying_connector:CopyingConnector"

    result = scene.explained(modules, connector_class=copying)

    assert 0 == result.return_value
    assert "Kafka was not reached" in result.stderr
    assert "c has nothing to read.\n" == result.stdout


def test_offsets_of_the_state_file_count(scene: Scene):
    """Also while a worker has it."""
    done = {"recordCount": 1, "anchor": 4, "skip": 0, "size": 4, "done": True}
    storage = SqliteStorage(scene.folder / "state.db")
    place = SourcePartition({"filename": str(scene.folder / "in" / "a.txt")})
    storage.offsets.put("c", {place: done})

    running = scene.explained(AT_LEAST_ONCE)
    storage.close()
    before = scene.names()
    stopped = scene.explained(AT_LEAST_ONCE)

    assert running.stdout == stopped.stdout
    assert "would read 1 of 2 objects" in stopped.stdout
    assert "a.txt: not read: It was read to its end: 1 records." in stopped.stdout
    assert before == scene.names()


def test_what_would_fail_the_connector_is_shown_and_ends_with_one(scene: Scene):
    """Before all the rest, of which nothing would be read."""
    path = scene.folder / "in" / "c.xyz"
    path.write_text("one\n")

    result = scene.explained(files_path=f"{scene.folder / 'in'},{path}")

    assert 1 == result.return_value
    summary, _, failing, *_ = result.stdout.splitlines()
    without = "Without it 2 would be read, 8 bytes, in 1 of 1 slots."
    assert f"c would fail: 1 of 3 objects stops it. {without}" == summary
    assert "c.xyz: fails the connector: The extension does not identify the format" in failing


def test_a_link_to_itself_fails_the_connector_unless_errors_are_tolerated(scene: Scene):
    """A task would meet it, so explain asks what the task would do."""
    (scene.folder / "in" / "loop.txt").symlink_to("loop.txt")

    failing = scene.explained()
    tolerated = scene.explained(errors_tolerance="all")

    assert (1, 0) == (failing.return_value, tolerated.return_value)
    reason = "It is a symbolic link that leads to itself."
    summary, _, first, *_ = failing.stdout.splitlines()
    assert summary.startswith("c would fail: 1 of 3 objects stops it.")
    assert f"loop.txt: fails the connector: {reason}" in first
    assert "c would read 2 of 3 objects, 8 bytes, in 1 of 1 slots." in tolerated.stdout
    assert f"loop.txt: not read: It would be put in quarantine: {reason}" in tolerated.stdout


def test_several_objects_may_stop_the_connector():
    """And all of them come first."""
    rows = [Explained(name=name, reason="x", fails=name != "a") for name in "abc"]

    summary, *rest = explained_lines("c", rows, slots=2)

    assert "would fail: 2 of 3 objects stop it. Without them 0 would be read" in summary
    failing = [f"{name}: fails the connector: x" for name in "bc"]
    assert ["", *failing, "", "a: not read: x"] == rest


def test_a_state_file_that_is_none_is_refused(scene: Scene):
    """Naming it."""
    (scene.folder / "state.db").write_text("no database")

    result = scene.explained(AT_LEAST_ONCE)

    assert isinstance(result.exception, ConfigError)
    assert "cannot be read as a state file" in str(result.exception)


def test_a_wrong_configuration_is_refused_as_by_run(scene: Scene):
    """With its key."""
    result = scene.explained(topic="a b")

    assert isinstance(result.exception, ConnectError)
    assert "topic" in str(result.exception)


def test_a_connector_that_does_not_plan_is_reported(scene: Scene):
    """Only its tasks know."""
    result = scene.explained(connector_class="file_stream", file="in/a.txt")

    assert isinstance(result.exception, TaskFailedError)
    assert "makes no plan" in str(result.exception)


def test_names_stay_on_one_line():
    """Whatever is in them."""
    rows = [Explained(name="a\nb\udc80", slots=(0, 1), reason="x\ty")]

    *_, row, _, reason = explained_lines("c", rows, slots=2)

    assert "0,1   -      -      -          -       a\\nb\\udc80" == row
    assert "a\\nb\\udc80: read: x\\ty" == reason


@pytest.mark.parametrize("path", ["canary", "x/../canary-4711/", "./canary-4711"])
def test_an_error_shows_no_secret(scene: Scene, monkeypatch: pytest.MonkeyPatch, path: str):
    """The connector may print all that it was given, and does not know where it came from."""
    monkeypatch.setenv("HEADRACE_TEST_PATH", f"{scene.folder}/{path}")
    providers = {"config.providers": "env", "config.providers.env.class": "env"}
    result = scene.explained(providers, files_path="${env:HEADRACE_TEST_PATH}")

    assert "${env:HEADRACE_TEST_PATH}" in str(result.exception)
    assert "canary" not in str(result.exception)


def test_what_a_connector_does_not_know_is_not_counted():
    """No bytes where it knows none; and a line for nothing at all."""
    read = Explained(name="a", slots=(0,))

    summary, *_ = explained_lines("c", [read], slots=2)
    nothing = list(explained_lines("c", [], slots=2))

    assert "c would read 1 of 1 objects, in 1 of 2 slots." == summary
    assert ["c has nothing to read."] == nothing
