"""Which workers a group takes, as its leader decides. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.herder.group_protocol import MemberMetadata

_URL_IS_TAKEN: Final = (
    "Another worker of it is at {}, too, so that requests for one would reach the other: give each worker its own "
    "rest.advertised.host.name and rest.advertised.port, or listeners."
)
_OTHER_TOPICS: Final = "It has other topics than the group's leader: {}. The leader has {}. Give all workers of a group the same topics."
_MADE_AGAIN: Final = (
    "Its {} is not the topic that the group's leader has read: the ids are {} and {}, so the topic was deleted and made again. Stop all workers "
    "of the group before they are started with it."
)
_ID: Final = " (the id of the first one is "


def topics_in_words(topics: Mapping[str, str], made: str) -> str:
    """A group's *topics* by their settings, of which the first one has the id *made*, as a member says it to the leader."""
    return f"{', '.join(f'{key}={name}' for key, name in topics.items())}{_ID}{made})"


def refusals(said: Mapping[str, MemberMetadata], leader: str) -> dict[str, str]:
    """Why new members cannot be in the group: they have other topics than its *leader*, or a URL that another member has."""
    first: dict[str, str] = {}
    # The leader first among those that are new: it is never refused.
    for each in sorted(said, key=lambda each: (_is_new(said[each]), each != leader, each)):
        first.setdefault(said[each].url, each)
    topics = _topics(said[leader])
    refused = dict[str, str]()
    for each, one in said.items():
        if not _is_new(one) or each == leader:
            continue
        if first[one.url] != each:
            refused[each] = _URL_IS_TAKEN.format(one.url)
        elif topics and _topics(one) not in ("", topics):
            refused[each] = _difference(_topics(one), topics)
    return refused


def _is_new(said: MemberMetadata) -> bool:
    return said.notes is not None and said.notes.generation < 0


def _topics(said: MemberMetadata) -> str:
    return "" if said.notes is None else said.notes.topics


def _difference(words: str, leaders: str) -> str:
    (mine, my_id), (theirs, their_id) = _parts(words), _parts(leaders)
    if mine == theirs:
        return _MADE_AGAIN.format(mine[0], my_id, their_id)
    only_mine = [each for each in mine if each not in theirs]
    only_theirs = [each for each in theirs if each not in mine]
    return _OTHER_TOPICS.format(
        ", ".join(only_mine) or "none of these", ", ".join(only_theirs) or "none of these"
    )


def _parts(words: str) -> tuple[list[str], str]:
    topics, _, made = words.partition(_ID)
    return topics.split(", "), made.removesuffix(")")
