"""Source offsets as entries of a consumer group: loads a connector's codec, and turns offsets into what a group stores. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from headrace.class_path import class_at
from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry, GroupOffsetCodec
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.target import TargetGroup


class GroupChange(NamedTuple):
    """What changes in the *group*: *entries* are committed, and those of the places in *removed* are removed after that.

    *records* for the *topic*, which is the worker's, are committed with the entries: tombstones of offsets that have been
    there so far.
    """

    group: str
    entries: list[GroupEntry]
    removed: list[tuple[str, int]]
    topic: str = ""
    records: Sequence[OffsetEntry] = ()


def codec_of(target: TargetGroup) -> GroupOffsetCodec:
    """The codec that *target* names, made from its settings; imports the connector's module.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it cannot be loaded or refuses its settings.
    """
    made = cast(
        "Callable[[Mapping[str, str]], GroupOffsetCodec]", class_at(target.codec, GroupOffsetCodec)
    )
    try:
        return made(target.config)
    except ConnectError:
        raise
    except Exception as error:
        raise TaskFailedError(
            f"The codec {target.codec} of the consumer group {target.group_id!r} cannot be made: {error!r}"
        ) from error


def group_change(target: TargetGroup, codec: GroupOffsetCodec, offsets: Offsets) -> GroupChange:
    """What *offsets* change in the group; an offset of ``None`` removes. Raises what the codec raises."""
    return GroupChange(
        target.group_id,
        [codec.entry(each, offset) for each, offset in offsets.items() if offset is not None],
        [codec.place(each) for each, offset in offsets.items() if offset is None],
    )


def as_stored(codec: GroupOffsetCodec, offsets: Offsets) -> Offsets:
    """*offsets* as they are read back after they were committed. Raises what the codec raises.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a codec that cannot read its own entry.
    """
    stored = dict[SourcePartition, Mapping[str, object] | None]()
    for partition, offset in offsets.items():
        if offset is None:
            stored[partition] = None
            continue
        entry = codec.entry(partition, offset)
        found = codec.source(entry)
        if found is None:
            raise TaskFailedError(
                f"{type(codec).__name__} stores the offset {dict(offset)!r} of {partition!r} as {entry!r}, but cannot read that."
            )
        stored[found[0]] = found[1]
    return cast("Offsets", stored)
