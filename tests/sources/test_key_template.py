"""Templates of keys: what they tell, of which keys, and which are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.sources import Context, SourceConfig
from headrace.sources.destination import Destination, destination
from headrace.sources.key_template import KeyTemplate
from headrace.testing.task_runs import LocalRun
from sources.shelf import PROPS, LouderConnector, Shelf, ShelfConnector


@pytest.mark.parametrize(
    ("template", "key", "told"),
    [
        (
            "{{topic}}/{{partition}}-{{start_offset}}.gz",
            "a/b/3-042.gz",
            {"topic": "a/b", "partition": "3", "start_offset": "042"},
        ),
        (
            "{{ topic }}-{{ partition:padding=true }}",
            "t-0000000007",
            {"topic": "t", "partition": "0000000007"},
        ),
        ("{{topic}}.txt", "t_txt", {}),
        ("{{topic}}", "", {}),
        ("{{partition}}", "seven", {}),
        ("{{topic}}/{{topic}}/x", "t/t/x", {"topic": "t"}),
        ("{{topic}}/{{topic}}/x", "t/u/x", {}),
        (
            "{{timestamp:unit=yyyy}}/{{timestamp:unit=MM}}/{{key}}",
            "2026/11/k",
            {"timestamp": "2026", "key": "k"},
        ),
        ("plain", "plain", {}),
    ],
)
def test_what_a_key_tells(template: str, key: str, told: dict[str, str]):
    """The whole key has to be of the form; its other characters are themselves."""
    assert told == KeyTemplate(template).told(key)


@given(topic=st.text(min_size=1), partition=st.integers(0, 10**9))
def test_what_was_put_in_comes_out(topic: str, partition: int):
    """Whatever the topic looks like."""
    told = KeyTemplate("x.{{topic}}-{{partition}}").told(f"x.{topic}-{partition}")

    assert {"topic": topic, "partition": str(partition)} == told


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{bucket}}", "{{bucket}} is none of topic, partition, key, start_offset, timestamp"),
        ("{{timestamp:unit=yyyy-MM}}", "has braces around what is no variable"),
        ("{{topic}", "has braces around what is no variable"),
    ],
)
def test_a_template_that_is_none_is_a_problem_of_the_configuration(template: str, problem: str):
    """It is not read as plain text."""
    ((key, told),) = SourceConfig.problems({"native.key.template": template})

    assert "native.key.template" == key
    assert problem in told


@pytest.mark.parametrize(
    ("configured", "told", "context", "expected"),
    [
        (
            "c",
            {"topic": "t", "partition": "007"},
            Context(native_key=1, topic="x", partition=1),
            ("c", 7),
        ),
        (None, {"topic": "t"}, Context(native_key=1, topic="x", partition=1), ("t", 1)),
        (None, {}, Context(native_key=1, topic="x"), ("x", None)),
        (None, {}, Context(native_key=1), ("", None)),
    ],
)
def test_the_configuration_wins_then_the_template_then_the_context(
    configured: str | None,
    told: dict[str, str],
    context: Context[int],
    *,
    expected: tuple[str, int | None],
):
    """Each for the topic and the partition by itself."""
    topic, partition = expected

    assert Destination(topic=topic, partition=partition) == destination(
        context, configured=configured, told=told
    )


def test_records_have_the_key_that_the_template_tells(shelf: Shelf):
    """And its topic; the last evolution has the last word."""
    shelf.objects = {"t/k": b"1\n2\n"}
    props = {"extractor.class": "lines", "native.key.template": "{{topic}}/{{key}}"}

    plain = LocalRun(ShelfConnector(), props, {}).until_idle()
    louder = LocalRun(LouderConnector(), props, {}).until_idle()

    assert [("t", "k", "1"), ("t", "k", "2")] == [
        (each.topic, each.key, each.value) for each in plain
    ]
    assert [("t", "t/k")] * 2 == [(each.topic, each.key) for each in louder]


def test_objects_are_shared_out_by_the_partition_that_the_template_tells(shelf: Shelf):
    """With distribution.type=PARTITION."""
    shelf.objects = {f"{number}": b"x\n" for number in range(6)}
    props = {**PROPS, "native.key.template": "{{partition}}", "distribution.type": "PARTITION"}

    found = LocalRun(ShelfConnector(), props, {}, slots=2).until_idle()

    assert ["0", "2", "4", "1", "3", "5"] == [each.partition["key"] for each in found]
