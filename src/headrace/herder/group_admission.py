"""Which workers a group takes, as its leader decides. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.herder.group_protocol import MemberMetadata

_URL_IS_TAKEN: Final = (
    "Another worker of it is at {}, too, so that requests for one would reach the other: give each worker its own "
    "rest.advertised.host.name and rest.advertised.port, or listeners."
)
_OTHER_TOPICS: Final = (
    "It has other topics than the group's leader: {}. The leader has {}. Give all workers of a group the same topics; if one was deleted "
    "and made again, stop all workers before they are started with it."
)


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
            refused[each] = _OTHER_TOPICS.format(_topics(one), topics)
    return refused


def _is_new(said: MemberMetadata) -> bool:
    return said.notes is not None and said.notes.generation < 0


def _topics(said: MemberMetadata) -> str:
    return "" if said.notes is None else said.notes.topics
