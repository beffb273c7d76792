"""A naming policy that gives different topics one name."""

from __future__ import annotations

from headrace.mirror.policies import ReplicationPolicy


class LastWordPolicy(ReplicationPolicy):
    """Keeps what is behind the last dot."""

    def remote_topic(self, source: str, topic: str) -> str:
        """See :class:`~headrace.mirror.policies.ReplicationPolicy`."""
        return f"{source}.{topic.rpartition('.')[2]}"

    def topic_source(self, topic: str) -> str | None:
        """See :class:`~headrace.mirror.policies.ReplicationPolicy`."""
        return topic.partition(".")[0]
