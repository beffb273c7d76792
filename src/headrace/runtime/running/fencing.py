"""Which transactional ids must be fenced before offsets are read; pure."""

from __future__ import annotations

from headrace.storage.protocols import TaskCount


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """The id under which a task's slots write, as Kafka Connect names it (KIP-618)."""
    return f"{group_id}-{connector}-{task}"


def ids_to_fence(
    group_id: str, connector: str, *, stored: TaskCount | None, current: int
) -> list[str]:
    """The ids that an earlier owner may still write with; none after a clean end."""
    if stored is not None and stored.clean:
        return []
    count = max(current, 0 if stored is None else stored.slots)
    return [transactional_id(group_id, connector, task) for task in range(count)]
