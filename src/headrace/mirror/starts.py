"""Where a partition is read from: its position compared with what the source's log, and the remote partition, are now. Pure.

A position that does not fit is reported, never guessed away: by default its partition stops, with a sentence that says what was
found and which command goes on.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from uuid import UUID

from headrace.connect.config import Config
from headrace.connect.partition import OffsetValue
from headrace.connect.setting import setting
from headrace.discovery.state import topic_id_text
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.positions import Flow, Position

_FAIL, _CONTINUE, _RESTART = "fail", "continue", "restart"
_OTHERWISE: Final = (
    "`fail`: its partitions are not copied until someone decides; `continue` at the position; or `restart` at the beginning of "
    "what is there now. Each is reported."
)


class StartConfig(Config):
    """What to do where a stored position does not fit what the clusters have."""

    on_other_cluster: Literal["fail", "continue", "restart"] = setting(
        "positions.on.other.cluster",
        default="fail",
        importance="low",
        doc=f"What to do when the source's addresses lead to another cluster than the positions are of: {_OTHERWISE}",
    )
    on_recreated: Literal["fail", "continue", "restart"] = setting(
        "positions.on.recreated",
        default="fail",
        importance="low",
        doc=f"What to do when a topic was deleted and created again (its topic id is another): {_OTHERWISE}",
    )
    on_truncated: Literal["fail", "continue"] = setting(
        "positions.on.truncated",
        default="fail",
        importance="low",
        doc="What to do when records were deleted at the source before they were copied: `fail`, or `continue` with what is "
        "left and report it. The partitions of a failure are not copied until someone decides.",
    )
    on_diverged: Literal["fail", "continue"] = setting(
        "positions.on.diverged",
        default="fail",
        importance="low",
        doc="What to do when the source has lost records that were copied, as after an unclean leader election: `fail`, or "
        "`continue` where the logs part and report it; the lost records stay at the target. The partitions of a failure "
        "are not copied until someone decides.",
    )
    on_missing: Literal["fail", "continue"] = setting(
        "positions.on.missing",
        default="fail",
        importance="low",
        doc="What to do when a partition has no position and the remote partition has records already, as after its entry "
        "has expired: `fail`, or `continue` as if it had none, which may double records. The partitions of a failure "
        "are not copied until someone decides.",
    )


class EpochEnd(NamedTuple):
    """The answer to OffsetForLeaderEpoch: the last epoch up to the one asked for, and where it ends; -1 for unknown."""

    epoch: int
    end: int


class SourceLog(NamedTuple):
    """What the source cluster says of one partition now.

    *end* is the high watermark. *epoch_end* is about the epoch of the stored position; ``None`` where it was not asked for.
    """

    cluster_id: str | None
    topic_id: UUID | None
    log_start: int
    end: int
    epoch_end: EpochEnd | None = None


class Resume(NamedTuple):
    """Read on at *position*, which is stored first if it is not the one that is stored; *told* is to be logged."""

    position: Position
    told: str | None = None


class Begin(NamedTuple):
    """It has no position: it starts by the rule for a partition that the first, or a later, discovery has found."""

    told: str | None = None


class Stop(NamedTuple):
    """It is not read until someone decides."""

    problem: str


Start = Resume | Begin | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRules:
    """Decides for the partitions of one connector, by its settings and its *group* on the target."""

    connector: str
    flow: Flow
    group: str
    config: StartConfig

    def resumed(self, place: TopicPartition, position: Position, log: SourceLog) -> Start:
        """Where to go on behind a stored *position*, given what the *log* is now."""
        found, policy = (
            _other_cluster(place, position, log, self.flow),
            self.config.on_other_cluster,
        )
        key = "other.cluster"
        if found is None:
            found, policy = _recreated(place, position, log), self.config.on_recreated
            key = "recreated"
        if found is None:
            return self._within(place, position, log)
        if policy == _FAIL:
            return Stop(
                f"{found} {self._advice(place)} {_allowing(key, 'go on at the position', 'begin again')}"
            )
        # Epochs of another log say nothing about this one.
        anew = _stamped(position, log)._replace(leader_epoch=None)
        if policy == _RESTART:
            return Resume(
                anew._replace(next=log.log_start),
                f"{found} It is copied from its beginning, offset {log.log_start}.",
            )
        within = self._within(place, anew, log._replace(epoch_end=None))
        if not isinstance(within, Resume):
            return within
        told = within.told or f"It is read on at offset {within.position.next}."
        return Resume(within.position, f"{found} {told}")

    def without(
        self, place: TopicPartition, remote: TopicPartition, remote_end: int, writer: str | None
    ) -> Start:
        """What to do without a position; *remote_end* is the end of the *remote* partition.

        *writer* is whose the entry is that the group has in place of one of this flow's; ``None`` without an entry.
        """
        if writer is not None:
            return Stop(
                f"{place} is not copied: the entry for {remote} in the group {self.group} on the target was committed by "
                f"{writer}. {self._advice(place)}"
            )
        if not remote_end:
            return Begin()
        found = (
            f"{place} has no position in the group {self.group} on the target, and {remote} there has records up to "
            f"offset {remote_end}: the position has expired or was removed, or another program writes there."
        )
        if self.config.on_missing == _FAIL:
            return Stop(f"{found} {self._advice(place)} {_allowing('missing', 'copy it anyway')}")
        return Begin(f"{found} It is copied as if there were none (positions.on.missing).")

    def _within(self, place: TopicPartition, position: Position, log: SourceLog) -> Start:
        config, at = self.config, position.next
        parting = _parting(position, log)
        if parting is not None:
            found = (
                f"{place} was copied up to offset {at}, and the source's log, which is from {log.log_start} to {log.end} now, "
                f"has only those before {parting} of them: the source has lost records, as after an unclean leader election."
            )
            if config.on_diverged == _FAIL:
                return Stop(f"{found} {self._advice(place)} {_allowing('diverged')}")
            moved = _stamped(position, log)._replace(next=parting)
            return Resume(moved, f"{found} It is read on there.")
        if at < log.log_start:
            found = (
                f"{place} was copied up to offset {at}, and the source's log begins at {log.log_start} now: "
                f"{log.log_start - at} offsets were deleted before they were copied."
            )
            if config.on_truncated == _FAIL:
                return Stop(f"{found} {self._advice(place)} {_allowing('truncated')}")
            moved = _stamped(position, log)._replace(next=log.log_start)
            return Resume(moved, f"{found} It is read on there.")
        return Resume(_stamped(position, log))

    def _advice(self, place: TopicPartition) -> str:
        source = _json(dict(self.flow.partition(place)))
        return (
            "Say after which offset to go on, while the connector is stopped: headrace offsets set "
            f"{self.connector} {shlex.quote(source)} {shlex.quote(_json({'offset': 'OFFSET'}))}."
        ).replace('"OFFSET"', "OFFSET")


def stopped(problems: Mapping[TopicPartition, str]) -> Iterator[str]:
    """The sentences about partitions that stop, one for each of the first few, and how many more there are."""
    shown = sorted(problems)[:_SHOWN]
    yield from (problems[each] for each in shown)
    if len(problems) > len(shown):
        yield f"So are {len(problems) - len(shown)} more partitions."


_SHOWN: Final = 5


def _stamped(position: Position, log: SourceLog) -> Position:
    """*position*, which was compared with *log*, with what identifies it."""
    return position._replace(
        cluster_id=log.cluster_id or position.cluster_id, topic_id=log.topic_id or position.topic_id
    )


def _other_cluster(
    place: TopicPartition, position: Position, log: SourceLog, flow: Flow
) -> str | None:
    if not (position.cluster_id and log.cluster_id) or position.cluster_id == log.cluster_id:
        return None
    return (
        f"{place} was copied up to offset {position.next} from the cluster with the id {position.cluster_id}, and the "
        f"addresses of {flow.source!r} lead to the cluster {log.cluster_id} now."
    )


def _recreated(place: TopicPartition, position: Position, log: SourceLog) -> str | None:
    if position.topic_id is None or log.topic_id in (None, position.topic_id):
        return None
    assert log.topic_id is not None
    return (
        f"The topic {place.topic} was deleted and created again at the source: {place} was copied up to offset "
        f"{position.next} of the topic with the id {topic_id_text(position.topic_id)}, and there is one with the id "
        f"{topic_id_text(log.topic_id)} now."
    )


def _parting(position: Position, log: SourceLog) -> int | None:
    """The offset from which on the log is not the one that was copied; ``None`` if all before the position is the same."""
    ends = [log.end] if log.end < position.next else []
    epoch = log.epoch_end
    if epoch is not None and min(epoch) >= 0 and epoch.end < position.next:
        ends.append(epoch.end)
    return max(min(ends), log.log_start) if ends else None


def _allowing(key: str, going_on: str = "go on", restarting: str = "") -> str:
    restart = f", or to restart to {restarting}" if restarting else ""
    return f"Or set positions.on.{key} to continue to {going_on} without asking{restart}."


def _json(values: Mapping[str, OffsetValue]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
