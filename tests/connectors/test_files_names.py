"""What files' names tell: topic, partition and key of their records, and which of them are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.files_steps import Steps, names_of
from headrace.connect import ConfigError, SourceBatch, TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.naming.destinations import Destinations
from headrace.sources.destination import Destination


def going(path: str, **props: str) -> Destination:
    """Where the records of the file at *path* go."""
    named = {key.replace("_", "."): value for key, value in props.items()}
    return Destinations(FilesConfig.parse({"files.path": "/in", **named})).of(path)


SINK = "{{topic}}-{{partition}}-{{start_offset}}.gz"


@pytest.mark.parametrize(
    ("path", "props", "expected"),
    [
        ("/in/a b.txt", {"topic": "x-${filename}"}, Destination(topic="x-a_b.txt")),
        ("/in/ab.txt", {"topic": "x-{{filename}}"}, Destination(topic="x-ab.txt")),
        (
            "/in/t-0003-00042.gz",
            {"files_name_template": SINK},
            Destination(topic="t", partition=3),
        ),
        (
            "/in/t-3-42.gz",
            {"files_name_template": SINK, "topic": "all", "files_partition": "0"},
            Destination(topic="all", partition=0),
        ),
        (
            "/in/t/k.csv",
            {"files_name_template": "{{topic}}/{{key}}.csv"},
            Destination(topic="t", key="k"),
        ),
        (
            "/in/t/k.csv",
            {"files_name_template": "{{topic}}/{{key}}.csv", "files_key": "{{topic}}/{{path}}"},
            Destination(topic="t", key="t//in/t/k.csv"),
        ),
        (
            "s3://b/x/region=eu/p=7/a.csv",
            {
                "files_path": "s3://b/x/",
                "files_name_regex": r"region=(?<region>[^/]+)/p=(?<p>\d+)/",
                "topic": "in-{{region}}",
                "files_partition": "{{p}}",
                "files_key": "{{path}}",
            },
            Destination(topic="in-eu", partition=7, key="x/region=eu/p=7/a.csv"),
        ),
    ],
)
def test_a_name_tells_where_records_go(path: str, props: dict[str, str], expected: Destination):
    """The configuration wins; a template is of the end of the path, a pattern found anywhere."""
    assert expected == going(path, **props)


@pytest.mark.parametrize(
    ("path", "props", "told"),
    [
        (
            "/in/a b.txt",
            {"topic": "x-{{filename}}"},
            "topic 'x-a b.txt'. A topic's name cannot hold ' '",
        ),
        (f"/in/{'a' * 250}", {"topic": "{{filename}}"}, "at most 249 characters, and this one 250"),
        ("/in/..", {"topic": "{{filename}}"}, "A topic cannot be called '..'"),
        (
            "/in/9",
            {"topic": "t", "files_partition": "{{filename}}999999999"},
            "partition '9999999999'. A partition is a number from 0 to 2147483647.",
        ),
        ("/in/x", {"topic": "t", "files_partition": "{{filename}}"}, "partition 'x'"),
        (
            "/in/a",
            {"topic": "t-{{k}}", "files_name_regex": "(?P<k>[0-9])?a"},
            "no topic for it: nothing tells {{k}} in its name",
        ),
    ],
)
def test_a_name_that_tells_what_cannot_be_is_an_error_with_the_file(
    path: str, props: dict[str, str], told: str
):
    """It is never bent to fit."""
    with pytest.raises(TaskFailedError) as raised:
        going(path, **props)

    assert str(raised.value).startswith(f"{path}: ")
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("props", "key", "told"),
    [
        ({}, "topic", 'Missing required configuration "topic"'),
        ({"topic": "a b"}, "topic", "for configuration topic: A topic's name cannot hold ' '"),
        ({"topic": "é{{filename}}"}, "topic", "cannot hold 'é'"),
        ({"topic": "{{x}}"}, "topic", "Nothing tells {{x}}; told are {{filename}}, {{path}}."),
        ({"topic": "t", "files_key": "{{topic}}"}, "files.key", "Nothing tells {{topic}}"),
        ({"topic": "t", "files_key": "${filename}"}, "files.key", "Write {{filename}}"),
        ({"topic": "t", "files_key": "{{a"}, "files.key", "braces around what is no variable"),
        ({"topic": "t", "files_partition": "p{{filename}}"}, "files.partition", "only hold digits"),
        ({"topic": "t", "files_partition": "99999999999"}, "files.partition", "0 to 2147483647"),
        ({"topic": "t", "files_partition": "9" * 5000}, "files.partition", "0 to 2147483647"),
        (
            {"topic": "t", "files_name_template": "{{bucket}}"},
            "files.name.template",
            "none of topic",
        ),
        ({"topic": "t", "files_name_regex": "("}, "files.name.regex", "is no regular expression"),
        (
            {"topic": "t", "files_name_regex": "a", "files_name_template": "a"},
            "files.name.regex",
            "Set it or files.name.template",
        ),
    ],
)
def test_a_wrong_template_is_a_problem_of_the_configuration(
    props: dict[str, str], key: str, told: str
):
    """Before anything is listed."""
    named = {name.replace("_", "."): value for name, value in props.items()}

    ((found, sentence),) = FilesConfig.problems({"files.path": "/in", **named})

    assert key == found
    assert told in sentence


def test_files_whose_names_are_of_another_form_are_left_out(tmp_path: Path):
    """With a template and with a pattern."""
    for name in ("a-1.txt", "b-x.txt", "c.txt"):
        (tmp_path / name).write_text("1\n")

    by_template = Steps(tmp_path, files_name_template="{{topic}}-{{partition}}.txt").plan()
    by_regex = Steps(tmp_path, files_name_regex="[bc][-.]").plan()

    assert ["a-1.txt"] == names_of(by_template)
    assert ["b-x.txt", "c.txt"] == names_of(by_regex)


def test_a_plan_fails_for_a_name_that_tells_no_topic(tmp_path: Path):
    """Before a slot begins to read it."""
    (tmp_path / "a b.txt").write_text("1\n")

    with pytest.raises(TaskFailedError, match=r"a b\.txt: Its records would go to the topic"):
        Steps(tmp_path, topic="{{filename}}").plan()


def test_records_have_partition_and_key(tmp_path: Path):
    """Of every batch; without them there are none."""
    (tmp_path / "k-7.txt").write_text("1\n2\n")

    (told,) = Steps(tmp_path, files_name_template="{{key}}-{{partition}}.txt").batches()[:1]
    plain = Steps(tmp_path).batches()[0]

    assert (7, ["k"] * len(told)) == (told.partition, keys_of(told))
    assert (None, None) == (plain.partition, plain.keys)


def keys_of(batch: SourceBatch) -> list[object]:
    """The keys of *batch*."""
    assert batch.keys is not None
    return batch.keys.to_pylist()


def test_what_is_wrong_with_two_settings_is_told_at_once():
    """A wrong topic beside a wrong key."""
    with pytest.raises(ConfigError) as raised:
        FilesConfig.parse({"files.path": "/in", "topic": "a b", "files.key": "{{x}}"})

    assert ["files.key", "topic"] == [key for key, _ in raised.value.problems]
