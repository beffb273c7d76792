"""`headrace explain`: what a connector would read next, and why it would not read the rest. Writes nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import click

from headrace.cli.table import one_line, table_lines
from headrace.config.client_settings import (
    ConnectorOffsetsGroup,
    ConnectorOffsetsTopic,
    connector_offsets_topic,
)
from headrace.config.config_files import connector_config, read_worker_file
from headrace.config.connector_config import ConnectorConfig
from headrace.config.state_file import state_path
from headrace.config.worker_config import WorkerConfig
from headrace.connect.connector import Explained, PlannedConnector, PlanRequest
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import KnownOffsets, SourceOffset, SourcePartition
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.observe.log_format import configure_logging
from headrace.observe.secret_masking import Secrets, masked_exceptions
from headrace.offsets.connector_topic import KafkaConnectorTopic
from headrace.offsets.consumer_group import connector_group
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.secondary import OverlaidOffsets
from headrace.offsets.store import OffsetSnapshot
from headrace.plugins import (
    ValidatedConnector,
    checked_worker,
    offsets_group,
    validated_connector,
)
from headrace.storage.sqlite_file import seen_offsets, seen_setting

_GROUP_ID = "group.id"
# A user waits at the terminal, and may not expect that a broker is needed.
_PATIENCE_SECONDS = 5.0
WOULD_FAIL = 1

_COLUMNS = ("slot", "bytes", "topic", "partition", "format", "object")


def explained_lines(connector: str, objects: Sequence[Explained], *, slots: int) -> Iterator[str]:
    """The lines to print: a summary, failing objects, a table of those that are read, and the others with reasons."""
    failing = [each for each in objects if each.fails]
    read = [each for each in objects if each.slots and not each.fails]
    yield _summary(connector, read, failing=len(failing), objects=len(objects), slots=slots)
    yield from _block(map(_reason, failing))
    if read:
        yield from _block(table_lines([_COLUMNS, *map(_row, read)]))
    yield from _block(_reason(each) for each in objects if each.reason and not each.fails)


def _summary(
    connector: str, read: Sequence[Explained], *, failing: int, objects: int, slots: int
) -> str:
    """What would happen; while an object fails the connector, nothing is read."""
    if not objects:
        return f"{connector} has nothing to read."
    used = {slot for each in read for slot in each.slots}
    amount = f"{_size(read)}in {len(used)} of {slots} slots."
    if not failing:
        return f"{connector} would read {len(read)} of {objects} objects, {amount}"
    stops, them = ("stops", "it") if failing == 1 else ("stop", "them")
    failure = f"{connector} would fail: {failing} of {objects} objects {stops} it."
    return f"{failure} Without {them} {len(read)} would be read, {amount}"


def _size(read: Sequence[Explained]) -> str:
    """The total size, if the connector knows it."""
    known = [each.size for each in read if each.size is not None]
    return f"{sum(known)} bytes, " if known or not read else ""


def _block(lines: Iterable[str]) -> Iterator[str]:
    """*lines* after an empty one, if there are any."""
    for number, line in enumerate(lines):
        if not number:
            yield ""
        yield line


def _row(one: Explained) -> Sequence[str]:
    cells = (",".join(map(str, one.slots)), one.size, one.topic, one.partition, one.form)
    return [*("-" if each is None else one_line(str(each)) for each in cells), one_line(one.name)]


def _reason(one: Explained) -> str:
    verb = "fails the connector" if one.fails else "read" if one.slots else "not read"
    return f"{one_line(one.name)}: {verb}: {one_line(one.reason or '')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffsets:
    """The stored offsets, entries of a group that are none, and a warning if they may not be what the user expects."""

    offsets: Mapping[SourcePartition, SourceOffset] = field(
        default_factory=dict[SourcePartition, SourceOffset]
    )
    unnamed: tuple[GroupEntry, ...] = ()
    warning: str | None = None


def stored_offsets(
    config: WorkerConfig, state_file: Path, found: ValidatedConnector
) -> StoredOffsets:
    """The offsets of the connector; none, with a warning, when Kafka is not reached within seconds.

    Raises :class:`~headrace.connect.errors.ConnectError` when they exist but cannot be read.
    """
    group = offsets_group(found, config)
    if group is not None:
        return _in_group(group, found.name, _patience_seconds(config))
    connector = ConnectorConfig.parse(found.props)
    group_id = config.group_id or seen_setting(state_file, _GROUP_ID)
    own = connector_offsets_topic(connector, config, group_id or "")
    warning = own and _unreached(KafkaAdmin(client_config(own.admin)), _patience_seconds(config))
    if warning:
        return StoredOffsets(warning=warning)
    if config.offsets_in_topic:
        below = _in_worker_topic(config, group_id, connector.name)
    else:
        below = StoredOffsets(offsets=seen_offsets(state_file, connector.name))
    return _overlaid(own, below, connector.name, _patience_seconds(config)) if own else below


def _in_group(own: ConnectorOffsetsGroup, connector: str, seconds: float) -> StoredOffsets:
    warning = _unreached(KafkaAdmin(client_config(own.connection)), seconds)
    if warning:
        return StoredOffsets(warning=warning)
    offsets = connector_group(own, connector)
    try:
        snapshot = offsets.current()
        return StoredOffsets(offsets=snapshot.known(), unnamed=snapshot.unnamed)
    finally:
        offsets.close()


def _overlaid(
    own: ConnectorOffsetsTopic, below: StoredOffsets, connector: str, seconds: float
) -> StoredOffsets:
    """The offsets in the connector's own topic, if it exists, over those of the worker."""
    topic = KafkaConnectorTopic(own, refresh_seconds=seconds)
    try:
        store = topic.existing()
        if store is None:
            return below
        known = store.current(connector).known()
        return replace(below, offsets=OverlaidOffsets(known, below.offsets))
    finally:
        topic.close()


def _in_worker_topic(config: WorkerConfig, group_id: str | None, connector: str) -> StoredOffsets:
    if group_id is None and config.offset_storage_topic is None:
        return StoredOffsets(warning="This worker has not run yet, so it has stored no offsets.")
    topic, seconds = config.offsets_topic(group_id or ""), _patience_seconds(config)
    admin = KafkaAdmin(client_config(config.connection()))
    warning = _unreached(admin, seconds)
    if warning:
        return StoredOffsets(warning=warning)
    if not admin.exists(topic, Deadline.after(seconds, time.monotonic)):
        return StoredOffsets(
            warning=f"The topic {topic} does not exist yet, so the worker has stored no offsets."
        )
    return StoredOffsets(offsets=offsets_in_topic(config, topic, connector))


def _patience_seconds(config: WorkerConfig) -> float:
    return min(_PATIENCE_SECONDS, config.start_deadline_ms / 1e3)


def _unreached(admin: KafkaAdmin, seconds: float) -> str | None:
    try:
        admin.check_reachable(Deadline.after(seconds, time.monotonic))
    except (RetriableError, TaskFailedError) as error:
        reason = admin.last_error or str(error)
        return f"Kafka was not reached ({reason.rstrip('.')}): the output assumes that no offsets are stored."
    return None


def offsets_in_topic(
    config: WorkerConfig, topic: str, connector: str
) -> Mapping[SourcePartition, SourceOffset]:
    """The offsets of *connector* in *topic* of the worker's cluster, which exists."""
    store = KafkaOffsetStore(
        topic,
        client=client_config(config.connection()),
        producer=producer_config(config.connection()),
    )
    try:
        store.refresh()
        return store.known(connector)
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class _Context:
    """A connector's context, without a runtime that could plan again."""

    offsets: KnownOffsets
    target: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    command_options: str = ""

    def request_task_reconfiguration(self) -> None:
        """Do nothing."""

    def raise_error(self, error: Exception) -> None:
        """Raise *error*."""
        raise error


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@click.argument(
    "connector_config_file", metavar="CONNECTOR_CONFIG", type=click.Path(path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def explain(worker_config: Path, connector_config_file: Path, *, as_json: bool) -> int:
    """Show what the connector of CONNECTOR_CONFIG would read next: by which slot, to which topic.

    Objects that it would not read are shown with the reason. Source offsets are read from where the worker stores
    them; nothing is written, no topic is created, and the worker may be running. Ends with 0, or with 1 when the
    connector would fail.
    """
    configure_logging("WARNING")
    config = checked_worker(
        read_worker_file(worker_config),
        where=str(worker_config),
        folder=worker_config.absolute().parent,
    )
    found = validated_connector(connector_config(connector_config_file), config)
    state_file = state_path(config, worker_config.absolute(), os.environ)
    settings = ConnectorConfig.parse(found.props)
    stored = stored_offsets(config, state_file, found)
    if stored.warning:
        click.echo(f"headrace: {stored.warning}", err=True)
    slots = min(settings.tasks_max, config.slots)
    with masked_exceptions(Secrets(values=found.secrets)):
        seen = OffsetSnapshot(stored.offsets, unnamed=stored.unnamed)
        rows = explained(found, seen, slots=slots, target=settings.admin(config))
    fails = any(each.fails for each in rows)
    if as_json:
        answer = {"connector": found.name, "slots": slots, "fails": fails}
        click.echo(json.dumps({**answer, "objects": [asdict(each) for each in rows]}, indent=2))
    else:
        for line in explained_lines(found.name, rows, slots=slots):
            click.echo(line)
    return WOULD_FAIL if fails else 0


def explained(
    found: ValidatedConnector,
    seen: OffsetSnapshot,
    *,
    slots: int,
    target: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[Explained]:
    """What the connector would do with each of its objects; *target* as its context has it.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a polled connector, and what the connector
    raises.
    """
    connector = found.connector
    if not isinstance(connector, PlannedConnector):
        raise TaskFailedError(
            f"Connector {found.name} is polled and makes no plan: only its running tasks know what to read."
        )
    connector.initialize(_Context(seen, target))
    try:
        connector.start(found.props)
        return list(connector.explain(PlanRequest(slots=slots, offsets=seen, unnamed=seen.unnamed)))
    finally:
        connector.stop()
