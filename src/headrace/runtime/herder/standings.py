"""How a herder's connectors are, as metrics tell it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.observe.standings import ConnectorStanding
from headrace.runtime.herder.errors import NotFoundError
from headrace.runtime.herder.herder import Herder


def standings(herder: Herder) -> Sequence[ConnectorStanding]:
    """Every connector of *herder* now; called on the thread that answers who measures."""
    return list(_standings(herder))


def _standings(herder: Herder) -> Iterator[ConnectorStanding]:
    for name in herder.connectors():
        try:
            status, info = herder.status(name), herder.info(name)
        except NotFoundError:
            # Deleted since its name was read.
            continue
        yield ConnectorStanding(
            name=name,
            type=status.type,
            class_name=info.config.get("connector.class") or "",
            state=status.connector.state.value,
            version=status.connector.version,
            tasks={each.task: each.state.value for each in status.tasks if each.task is not None},
        )
