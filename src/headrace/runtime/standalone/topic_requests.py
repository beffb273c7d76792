"""Requests about the topics that connectors have written to (KIP-558)."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.herder.errors import ForbiddenError
from headrace.runtime.standalone.parts import LocalParts


class TopicRequests:
    """Answered from the store, as far as the worker allows. Any thread may call."""

    def __init__(self, local: LocalParts) -> None:
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
