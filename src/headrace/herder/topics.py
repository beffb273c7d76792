"""The topics that each connector has written to (KIP-558): stored, answered and reset."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ForbiddenError
from headrace.herder.services import LocalServices
from headrace.observe.events import Event, TopicsWritten
from headrace.storage.protocols import (
    ConfigStore,
    TopicStore,
)

_log = logging.getLogger(__name__)


class TopicRequests:
    """Requests about active topics, answered from the store if the worker allows it. Any thread may call."""

    def __init__(self, local: LocalServices) -> None:
        self._local = local

    def topics(self, name: str) -> Sequence[str]:
        """The topics that the connector has written to; none for an unknown connector."""
        self._refuse_untracked()
        return self._local.topics.topics(name)

    def reset(self, name: str) -> None:
        """Forget which topics the connector has written to."""
        self._refuse_untracked()
        if not self._local.may_reset_topics:
            raise ForbiddenError("Topic tracking reset is disabled.")
        self._local.topics.forget(name)

    def _refuse_untracked(self) -> None:
        if not self._local.tracks_topics:
            raise ForbiddenError("Topic tracking is disabled.")


class ActiveTopics:
    """A listener of events that stores new topics. Called from any thread."""

    def __init__(self, topics: TopicStore, configs: ConfigStore) -> None:
        self._topics = topics
        self._configs = configs

    def __call__(self, event: Event) -> None:
        """Store new topics, unless the connector has been deleted meanwhile."""
        if not isinstance(event, TopicsWritten):
            return
        try:
            new = set(event.topics).difference(self._topics.topics(event.connector))
            if new and self._configs.connector(event.connector) is not None:
                self._topics.put(event.connector, sorted(new))
        except ConnectError as error:
            # The next micro-batch reports them again.
            _log.warning("The active topics of %s were not stored: %s", event.connector, error)
