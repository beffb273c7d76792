"""What every standalone worker opens before its connectors run, whoever starts them."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from headrace.observe.events import Tell
from headrace.runtime.capacity import Capacity
from headrace.runtime.engine import Engine
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.running.driver_commits import DriverCommits, fence_owners
from headrace.runtime.services import Services
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.standalone.foundation import channel_for, offset_homes, offset_store, timing
from headrace.storage.sqlite import SqliteStorage


def opened_services(
    config: WorkerConfig,
    storage: SqliteStorage,
    *,
    group_id: str,
    worker_id: str,
    tell: Tell,
    engine: Callable[[], Engine],
    close_later: Callable[[Callable[[], None]], object],
) -> Services:
    """The offset store, the channel and the data plane, opened in this order once Kafka has answered.

    *close_later* is given how to close each of them as soon as it is there. Raises
    :class:`~headrace.connect.errors.ConnectError` when one of them cannot be opened.
    """
    desk = OffsetDesk(offset_store(config, group_id, storage))
    close_later(desk.close)
    homes = offset_homes(desk)
    close_later(homes.close)
    channel = channel_for(config, homes)
    close_later(channel.close)
    data_plane = engine()
    close_later(data_plane.close)
    return Services(
        engine=data_plane,
        channel=channel,
        capacity=Capacity(data_plane.slots),
        offsets=homes,
        configs=storage.configs,
        statuses=storage.statuses,
        group_id=group_id,
        worker_id=worker_id,
        run_id=secrets.token_hex(8),
        timing=timing(config),
        tell=tell,
        fence=fence_owners,
        commit_offsets=DriverCommits(homes, group_id).commit,
    )
