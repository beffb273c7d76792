"""Remembers which topics each connector writes to (KIP-558)."""

from __future__ import annotations

import logging

from headrace.connect.errors import ConnectError
from headrace.observe.events import Event, TopicsWritten
from headrace.storage.protocols import ConfigStore, TopicStore

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
