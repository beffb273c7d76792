"""Which slot reads which file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.files_steps import Steps, names_of
from headrace.connect import ConfigError
from headrace.connect.connector import Plan
from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.aiven.config import AivenS3Config
from headrace.connectors.files.config import FilesConfig

NAMES = [f"{topic}-{number}-{page}.txt" for topic in "ab" for number in (0, 1) for page in (1, 2)]
FORM = {"files_name_template": "{{topic}}-{{partition}}-{{start_offset}}.txt"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of two topics with two partitions each; later ones are longer."""
    for number, name in enumerate(NAMES):
        (tmp_path / name).write_text("1\n" * (number + 1))
    return tmp_path


def shares(plan: Plan) -> list[list[str]]:
    """The names of the files of each share."""
    return [names_of(Plan(shares=[share])) for share in plan.shares]


def test_by_default_slots_get_as_many_bytes(folder: Path) -> None:
    """Nearly."""
    plan = Steps(folder).plan(slots=2)

    weights = [sum(2 * (NAMES.index(name) + 1) for name in share) for share in shares(plan)]
    assert abs(weights[0] - weights[1]) <= 4


def test_a_name_says_its_slot(folder: Path) -> None:
    """Whatever else there is, and however long it is."""
    all_of_them = shares(Steps(folder, files_distribution="hash").plan(slots=3))
    for name in NAMES[::2]:
        (folder / name).unlink()
    (folder / NAMES[-1]).write_text("1\n" * 999)

    left = shares(Steps(folder, files_distribution="hash").plan(slots=3))

    assert 1 < len(all_of_them) <= 3
    assert sorted(NAMES) == sorted(name for share in all_of_them for name in share)
    kept = [[name for name in share if name in NAMES[1::2]] for share in all_of_them]
    assert [share for share in kept if share] == left


def test_a_partition_is_read_by_one_slot_in_the_order_of_names(folder: Path) -> None:
    """Where names tell it, of whatever topic."""
    plan = Steps(folder, files_distribution="partition", **FORM).plan(slots=2)

    assert [[name for name in NAMES if f"-{number}-" in name] for number in (0, 1)] == shares(plan)


def test_a_slot_without_a_partition_has_no_share(folder: Path) -> None:
    """There are fewer partitions than slots, or all files go to one."""
    assert 2 == len(Steps(folder, files_distribution="partition", **FORM).plan(slots=9).shares)
    told = Steps(folder, files_distribution="partition", files_partition="5").plan(slots=2)
    assert [NAMES] == shares(told)


def test_explain_tells_the_slots(folder: Path) -> None:
    """Those of the plan."""
    rows = Steps(folder, files_distribution="partition", **FORM).explained(slots=2)

    assert {name: [int(name[2])] for name in NAMES} == {
        name: list(row.slots) for name, row in rows.items()
    }


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"files.distribution": "partition"}, "Nothing tells the Kafka partition"),
        (
            {"files.distribution": "partition", "files.name.regex": "(?P<topic>.)"},
            "Nothing tells the Kafka partition",
        ),
        ({"files.distribution": "hash", "files.split.bytes": "9"}, "one slot reads all of a file"),
        ({"files.distribution": "even"}, "must be one of"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, str], words: str) -> None:
    """With what is missing, or too much."""
    with pytest.raises(ConfigError, match=words):
        FilesConfig.parse({"files.path": "/x", "topic": "t", **more})


@pytest.mark.parametrize("form", ["(?P<partition>[0-9])", None])
def test_a_partition_may_be_told_in_several_ways(form: str | None) -> None:
    """By a regular expression, or by files.partition."""
    told = {"files.name.regex": form} if form else {"files.partition": "{{filename}}"}
    props = {"files.path": "/x", "topic": "t", "files.distribution": "partition", **told}

    assert "partition" == FilesConfig.parse(props).distribution


def test_a_file_that_tells_no_partition_fails_the_plan(folder: Path) -> None:
    """With its name, where names have to tell it."""
    (folder / "c.txt").write_text("1\n")
    form = r"[a-c](-(?P<partition>[0-9])-[0-9])?\.txt"
    steps = Steps(folder, files_distribution="partition", files_name_regex=form)

    with pytest.raises(TaskFailedError, match=r"c\.txt.*There is no files\.partition for it"):
        steps.plan(slots=2)


def test_aivens_key_speaks_for_its_alias() -> None:
    """Where one key says it, the other is refused; and nothing is left out by its name."""
    given = {
        "aws.s3.bucket.name": "my-bucket",
        "file.name.template": "{{topic}}-{{partition}}",
        "topic": "t",
    }
    parse: Callable[[dict[str, str]], FilesConfig] = AivenS3Config.parse

    assert () == parse(given).exclude
    with pytest.raises(ConfigError, match=r"distribution\.type says it"):
        parse({**given, "files.distribution": "hash"})
