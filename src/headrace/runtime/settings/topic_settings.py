"""The settings that say how topics are made that are not there (KIP-158)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.connect.config import Config, Problem, setting
from headrace.runtime.settings.topic_group_settings import (
    DEFAULT,
    PREFIX,
    group_problems,
    ignored_patterns,
    topic_group,
)
from headrace.slot.topic_groups import TopicGroup

GROUPS: Final = "topic.creation.groups"
"""The key of the list of groups."""


class TopicSettings(Config):
    """Groups of topics, each made in its own way; part of every connector's configuration.

    What is set for a group, ``topic.creation.<group>.…``, is no attribute: users name groups.
    """

    topic_creation_groups: tuple[str, ...] = setting(
        default=(),
        importance="low",
        doc="Groups of topics that are made in their own way when they are missing, as topic.creation.<group>.… "
        "says. The first group that takes a topic counts, at last the group default.",
        group="Topic Creation",
        order=1,
        width="LONG",
        display_name="Topic Creation Groups",
    )

    @property
    def makes_topics(self) -> bool:
        """Whether anything is said about making topics: tasks then make theirs when they are missing."""
        return any(key.startswith(PREFIX) for key in self.originals)

    @property
    def group_names(self) -> tuple[str, ...]:
        """All groups in the order in which they are asked, the default one last."""
        named = (each for each in self.topic_creation_groups if each != DEFAULT)
        return (*dict.fromkeys(named), DEFAULT)

    @property
    def topic_groups(self) -> tuple[TopicGroup, ...]:
        """The groups; none where nothing is said. Raises ``ValueError`` when :func:`topic_problems` has any."""
        if not self.makes_topics:
            return ()
        return tuple(topic_group(each, self.originals) for each in self.group_names)


def topic_problems(config: TopicSettings, *, enabled: bool) -> Iterator[Problem]:
    """What is wrong with the groups; of those that the worker has not *enabled*, only their names. Pure."""
    groups = config.topic_creation_groups
    if len(set(groups)) < len(groups):
        told = f"Invalid value [{', '.join(groups)}] for configuration {GROUPS}"
        yield GROUPS, f"{told}: Duplicate alias provided."
    if enabled and config.makes_topics:
        # As a Java worker finds them: what is missed in the default group comes first.
        for each in (DEFAULT, *config.group_names[:-1]):
            yield from group_problems(each, config.originals)


def topic_warnings(config: TopicSettings, *, enabled: bool) -> Iterator[str]:
    """Sentences about settings of groups that have no effect. Pure."""
    if config.makes_topics and not enabled:
        yield (
            "topic.creation.* has no effect, because the worker has topic.creation.enable=false: a missing topic is "
            "made by the broker or not at all."
        )
        return
    if DEFAULT in config.topic_creation_groups:
        yield f"The group default in {GROUPS} has no effect: it is always there, and always the last one."
    for key in ignored_patterns(config.originals):
        yield f"{key} has no effect: the group default takes every topic that no other group takes."
