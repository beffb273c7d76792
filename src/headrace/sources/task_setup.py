"""What a native task begins to scan with: its rules, the first key, and what was left unfinished."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.connect.partition import SourcePartition
from headrace.formats.format import ReadLimits
from headrace.sources.config import RECORD_KEY, SourceConfig, start_key
from headrace.sources.destination import Destination, destination
from headrace.sources.distribution import owner
from headrace.sources.item import Context
from headrace.sources.key_template import KeyTemplate
from headrace.sources.marks import TASK_ID, TASKS, marked_keys, unfinished_keys
from headrace.sources.source import NativeSource
from headrace.sources.unfinished import Unfinished
from headrace.sources.work_planner import ScanRules

_CHUNK_BYTES = 1024 * 1024


def rules_of(
    source: NativeSource[Any],
    settings: SourceConfig,
    config: Mapping[str, str],
    *,
    topic_later: bool,
) -> ScanRules:
    """What a task with these *settings* reads, and to where; *config* is what it was started with.

    *topic_later* says that a record's topic may be told after it was read.
    """
    tasks, task = int(config.get(TASKS, "1")), int(config.get(TASK_ID, "0"))

    def owns(partition: SourcePartition, kafka_partition: int | None) -> bool:
        chosen = owner(settings.distribution_type.upper(), partition, kafka_partition, tasks)
        return chosen is None or chosen == task

    return ScanRules(
        goes_to=_destinations(source, settings),
        topic_later=topic_later,
        changed=settings.changed,
        limits=ReadLimits(
            rows=settings.max_poll_records,
            chunk_bytes=_CHUNK_BYTES,
            record_bytes=settings.max_record_bytes,
            record_key=RECORD_KEY,
        ),
        owns=owns,
    )


def first_key(source: NativeSource[Any], settings: SourceConfig, config: Mapping[str, str]) -> Any:  # noqa: ANN401 (a key of the source's own type)
    """The key to begin the first listing at: the least of all marks, else what the user says."""
    codec = source.key_codec()
    if codec is None:
        return None
    marks = [codec.decode(text) for text in marked_keys(config)]
    if marks:
        return min(marks)
    first = settings.native_start_key
    return None if first is None else start_key(first, codec, source.name)


def unfinished_of(source: NativeSource[Any], config: Mapping[str, str]) -> Unfinished[Any]:
    """What is not done, as far as entries told it at the start."""
    codec = source.key_codec()
    keys = [] if codec is None else [codec.decode(text) for text in unfinished_keys(config)]
    return Unfinished({source.offset_key(key).partition: key for key in keys})


def _destinations(
    source: NativeSource[Any], settings: SourceConfig
) -> Callable[[Context[Any]], Destination]:
    template = settings.key_template
    matched, codec = template and KeyTemplate(template), source.key_codec()

    def goes_to(context: Context[Any]) -> Destination:
        key = context.native_key
        told = matched.told(codec.encode(key) if codec else str(key)) if matched else {}
        return destination(context, configured=settings.topic, told=told)

    return goes_to
