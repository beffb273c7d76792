"""Connectors whose shares have no end, run in this process."""

from __future__ import annotations

from pathlib import Path

from doubles.followed_files import FollowedFiles
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.testing.task_runs import LocalRun


def test_a_task_that_follows_its_share_ends_when_it_has_nothing(tmp_path: Path) -> None:
    """A worker's run with ``--once`` does the same, after a while; the next run goes on behind it."""
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("3\n")
    props = {"folder": str(tmp_path), "topic": "t"}
    stored: dict[SourcePartition, SourceOffset] = {}

    first = LocalRun(FollowedFiles(), props, stored, slots=2).until_idle()
    with (tmp_path / "b").open("a") as grown:
        grown.write("4\n")
    second = LocalRun(FollowedFiles(), props, stored, slots=2).until_idle()

    assert ["1", "2", "3"] == [each.value for each in first]
    assert ["4"] == [each.value for each in second]
    assert {
        SourcePartition(file="a"): {"position": 4},
        SourcePartition(file="b"): {"position": 4},
    } == stored
