"""Which workers a group refuses, without a group."""

from __future__ import annotations

import pytest

from headrace.herder.group_admission import refusals, topics_in_words
from headrace.herder.group_protocol import MemberMetadata, MemberNotes


def member(*, url: str = "http://a/", generation: int = -1, topics: str = "ours") -> MemberMetadata:
    """A worker that joins, for the first time unless it has completed a *generation*."""
    notes = MemberNotes(generation=generation, topics=topics)
    return MemberMetadata(url=url, config_offset=1, notes=notes)


@pytest.mark.parametrize("leader", ["one", "two"])
def test_of_workers_at_one_url_that_are_started_together_only_the_leader_is_taken(
    leader: str,
) -> None:
    """Whatever ids the broker has given them: after their first generation both would count as known."""
    refused = refusals({"one": member(), "two": member()}, leader)

    assert {"one", "two"} - {leader} == refused.keys()
    assert all("is at http://a/, too" in sentence for sentence in refused.values())


def test_a_worker_at_the_url_of_one_that_is_in_the_group_is_refused() -> None:
    """The other one stays, although its id is the later one."""
    said = {"leader": member(url="http://l/", generation=3), "x": member(generation=3)}

    assert ["new"] == list(refusals({**said, "new": member()}, "leader"))


def test_a_worker_with_other_topics_than_the_leader_is_refused() -> None:
    """One that does not say which it has, such as an older headrace, is taken."""
    said = {
        "leader": member(url="http://l/", topics="ours"),
        "other": member(url="http://o/", topics="theirs"),
        "older": member(url="http://e/", topics=""),
    }

    refused = refusals(said, "leader")

    assert ["other"] == list(refused)
    assert "It has other topics than the group's leader: theirs. The leader has ours" in str(
        refused["other"]
    )


OURS = {"config.storage.topic": "c", "offset.storage.topic": "o", "status.storage.topic": "s"}


def _refused(topics: dict[str, str], made: str) -> str:
    leader = member(url="http://l/", topics=topics_in_words(OURS, "A"))
    other = member(url="http://o/", topics=topics_in_words(topics, made))
    return refusals({"leader": leader, "other": other}, "leader")["other"]


def test_only_the_topics_that_differ_are_named() -> None:
    """The id of the config topic says nothing where that is another one anyway."""
    told = _refused({**OURS, "config.storage.topic": "d", "status.storage.topic": "t"}, "B")

    assert (
        "leader: config.storage.topic=d, status.storage.topic=t. The leader has "
        "config.storage.topic=c, status.storage.topic=s. Give"
    ) in told
    assert "offset.storage.topic" not in told
    assert "id" not in told.split()


def test_a_topic_that_was_made_again_is_told_by_its_ids() -> None:
    """All names are the same."""
    told = _refused(OURS, "B")

    assert "Its config.storage.topic=c is not the topic" in told
    assert "the ids are B and A" in told
    assert "Stop all workers" in told
