"""Which topics each connector has written to (KIP-558): remembered, answered and reset."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ForbiddenError
from headrace.herder.services import LocalServices
from headrace.observe.events import Event, TopicsWritten
from headrace.storage.protocols import ConfigStore, TopicStore


class TopicRequests:
    """Answered from the store, as far as the worker allows. Any thread may call."""

    def __init__(self, local: LocalServices) -> None:
        self._local = local

    def topics(self, name: str) -> Sequence[str]:
        """The topics that the connector has written to; none of a connector that is not there."""
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


_log = logging.getLogger(__name__)


class ActiveTopics:
    """A listener of events; stores what is new. Told from any thread."""

    def __init__(self, topics: TopicStore, configs: ConfigStore) -> None:
        self._topics = topics
        self._configs = configs

    def __call__(self, event: Event) -> None:
        """Store topics that are new; those of a connector that has been deleted meanwhile are not."""
        if not isinstance(event, TopicsWritten):
            return
        try:
            new = set(event.topics).difference(self._topics.topics(event.connector))
            if new and self._configs.connector(event.connector) is not None:
                self._topics.put(event.connector, sorted(new))
        except ConnectError as error:
            # The next micro-batch tells them again.
            _log.warning("The active topics of %s were not stored: %s", event.connector, error)
