"""When a mirror's slots are ended for a new plan."""

from __future__ import annotations

from typing import Any, cast

import pytest

from discovery.cluster_double import Clock, Log
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.mirror.planning import Seen
from headrace.mirror.settings import MirrorSourceConfig
from headrace.mirror.source_logs import topics_of
from headrace.mirror.topic_watch import TopicWatch
from headrace.observe.log_format import naming_in_logs, worker_in_logs
from mirror.two_clusters import PROPS, FlowCluster
from waiting import until

COPIED = MirrorSourceConfig.parse({**PROPS, "topics": "t|u"}).topics_copied


class Watched:
    """A watch of a cluster in memory, on a clock that the test sets."""

    def __init__(self, *, interval: float | None = 100.0) -> None:
        self.cluster, self.clock = FlowCluster(), Clock()
        self.cluster.create("t", Log())
        self.seen = Seen(due_at=1000.0)
        self.watch = TopicWatch(
            cast("Any", self.cluster),
            COPIED,
            lambda: self.seen,
            interval_seconds=interval,
            clock=self.clock,
        )
        self.look()

    def look(self) -> None:
        """A plan has been made of what there is."""
        answer = self.cluster.metadata(None, cast("Any", None))
        self.seen = self.seen._replace(topics=topics_of(answer, COPIED))

    def after(self, seconds: float) -> bool:
        """Whether a plan is due so many seconds later."""
        self.clock.now += seconds
        return self.watch.is_due()


@pytest.fixture
def watched() -> Watched:
    """Every hundred seconds."""
    return Watched()


def test_nothing_is_due_while_nothing_changes(watched: Watched):
    """The source is asked at the interval, and not before."""
    assert not watched.after(99)
    asked = len(watched.cluster.asked)
    assert not watched.after(2)
    assert asked + 1 == len(watched.cluster.asked)


@pytest.mark.parametrize("change", ["topic", "partition", "id", "gone"])
def test_a_plan_is_due_when_what_is_copied_has_changed(watched: Watched, change: str):
    """Also when a topic was made again, or is gone."""
    if change == "topic":
        watched.cluster.create("u", Log())
    elif change == "partition":
        watched.cluster.add(Log())
    elif change == "id":
        watched.cluster.create("t", Log())
    else:
        watched.cluster.delete("t")
        watched.cluster.create("other", Log())

    assert not watched.after(99)
    assert watched.after(2)
    watched.look()
    assert not watched.after(101)


def test_topics_that_are_not_copied_change_nothing(watched: Watched):
    """However many come and go."""
    watched.cluster.create("other", Log())

    assert not watched.after(101)


def test_an_answer_without_a_topic_says_nothing(watched: Watched):
    """It is that of a broker that has just started."""
    watched.cluster.delete("t")

    assert not watched.after(101)


def test_positions_are_due_to_be_committed_again(watched: Watched):
    """Also where topics are not looked for."""
    silent = Watched(interval=None)
    silent.cluster.create("u", Log())

    assert not silent.after(999)
    assert silent.after(1)
    assert watched.after(1000)


def test_partitions_that_were_left_out_are_tried_again_soon(watched: Watched):
    """Their leaders may be there."""
    watched.seen = watched.seen._replace(are_left_out=True)

    assert not watched.after(29)
    assert watched.after(1)


def test_the_thread_asks_for_plans_and_waits_for_a_source_that_is_away(
    caplog: pytest.LogCaptureFixture,
):
    """However long that takes, and says so once. What no retry can resolve is raised."""
    caplog.set_level("INFO")
    made = Watched(interval=0.001)
    made.watch._clock = __import__("time").monotonic
    asked, failed = list[int](), list[Exception]()
    made.seen = made.seen._replace(due_at=None)
    made.cluster.create("u", Log())
    threads = list[str | None]()

    def ask() -> None:
        threads.append(worker_in_logs())
        asked.append(1)

    with naming_in_logs("A->B"):
        made.watch.start("m", ask, failed.append)
    until(lambda: asked)
    assert {"A->B"} == {*threads}

    made.cluster.metadata_failures = [RetriableError("no one is there")] * 20
    until(lambda: "listed again" in caplog.text)
    assert not failed
    assert 1 == caplog.text.count("no one is there")
    made.cluster.metadata_failures = [TaskFailedError("no")]
    until(lambda: failed)
    made.watch.stop()
    assert "no" == str(failed[0])


def test_an_error_that_nobody_expects_fails_the_connector():
    """No plan would be asked for any more, and nobody would know."""
    made, failed = Watched(interval=0.001), list[Exception]()
    made.watch._clock = __import__("time").monotonic
    made.seen = made.seen._replace(due_at=None)
    error = ConnectionError("none of ours")
    made.cluster.metadata_failures = [error]
    made.watch.start("m", lambda: None, failed.append)
    until(lambda: failed)

    assert [error] == failed


def test_topics_are_listed_again_when_the_source_has_answered(caplog: pytest.LogCaptureFixture):
    """Not when a look at the clock is enough; the next failure is of the same outage."""
    caplog.set_level("INFO")
    made = Watched(interval=1.0)
    made.seen = made.seen._replace(due_at=None)
    made.watch._clock = __import__("time").monotonic
    made.cluster.metadata_failures = [RetriableError("no one is there")] * 2
    asked = list[int]()
    made.watch.start("m", lambda: asked.append(1), lambda _: None)
    until(lambda: "no one is there" in caplog.text)
    made.seen = made.seen._replace(due_at=0.0)
    until(lambda: asked)
    assert "listed again" not in caplog.text

    made.seen = made.seen._replace(due_at=None)
    until(lambda: "listed again" in caplog.text)
    made.watch.stop()
    assert 1 == caplog.text.count("no one is there")
