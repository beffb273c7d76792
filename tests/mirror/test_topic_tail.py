"""What a reader of the mirror's own topics makes of brokers that do not know one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from discovery.cluster_double import Log
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.error_codes import LEADER_NOT_AVAILABLE, error_code
from headrace.mirror.topic_tail import TopicTail
from mirror.two_clusters import FlowCluster


class Tailed:
    """A cluster with an empty topic, and its reader."""

    def __init__(self) -> None:
        self.cluster = FlowCluster()
        self.cluster.create("own", Log())
        self.forgotten = 0
        self.tail = TopicTail(cast("Any", self.cluster), "own", self._forget)

    def _forget(self) -> None:
        self.forgotten += 1

    def read(self) -> None:
        """To the end, where there is nothing."""
        assert [] == [*self.tail.read(Deadline.after(1))]


@pytest.fixture
def tailed() -> Tailed:
    """Nothing has been read."""
    return Tailed()


@pytest.mark.parametrize("was_read", [False, True])
def test_brokers_that_do_not_say_what_the_topic_is_are_asked_again_later(
    tailed: Tailed, *, was_read: bool
):
    """As while its leader is elected: it is neither missing nor read to its end."""
    if was_read:
        tailed.read()
    tailed.cluster.errors["own"] = LEADER_NOT_AVAILABLE

    with pytest.raises(RetriableError, match="topic own is now"):
        tailed.read()
    assert not tailed.tail.is_complete
    tailed.cluster.errors.clear()
    tailed.read()
    assert (True, True, 0) == (tailed.tail.is_there, tailed.tail.is_complete, tailed.forgotten)


@pytest.mark.parametrize("was_read", [False, True])
def test_one_broker_that_does_not_know_the_topic_yet_says_nothing(
    tailed: Tailed, *, was_read: bool
):
    """Another one is asked."""
    if was_read:
        tailed.read()
    tailed.cluster.unknown = [{"own"}]

    tailed.read()
    assert (True, True, 0) == (tailed.tail.is_there, tailed.tail.is_complete, tailed.forgotten)


def test_a_topic_that_two_answers_lack_is_not_there(tailed: Tailed):
    """Then one answer is enough until it is; what was read of it is forgotten."""
    tailed.read()
    tailed.cluster.delete("own")
    tailed.read()
    assert (False, True, 1) == (tailed.tail.is_there, tailed.tail.is_complete, tailed.forgotten)

    tailed.read()
    assert 1 == tailed.cluster.asked.count("metadata again")
    tailed.cluster.create("own", Log())
    tailed.read()
    assert tailed.tail.is_there


def test_a_topic_that_may_not_be_read_fails(tailed: Tailed):
    """No retry helps."""
    refused = error_code(29)
    assert refused is not None
    tailed.cluster.errors["own"] = refused

    with pytest.raises(TaskFailedError, match="The topic own cannot be read"):
        tailed.read()
