"""What the enumerator knows, as a value that is stored; its JSON.

One object for each topic, in the order of names, and in it what is known of its partitions, in the order of numbers. What is
empty is left out, so that 10,000 partitions with their positions are about as long as in Spark's own offsets::

    {"version": 1000, "initial_discovery_finished": true, "topics": {"orders": {
        "id": "v3Lb1GqUQ5mYtn8nqGJkzw",
        "assigned": {"0": 120, "1": 7}, "unassigned": {"2": null}, "removed": {"3": 55},
        "initial": [2], "start": {"1": 0}, "stop": {"1": 90}}}}

Under the three statuses are positions, ``null`` where someone else keeps them; ``initial``, ``new`` and ``from_zero`` list
partitions whose offsets are yet to be resolved. Equal states are equal text. Its bytes, and the
bytes of Flink's source, are in ``state_serializer``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from headrace.connect.errors import TaskFailedError
from headrace.kafka.topic_partition import TopicPartition, topic_id_text

VERSION: Final = 1000
"""Of our JSON and bytes: far above the versions of Flink's source, so that a future one of it is not taken for ours."""


class Status(Enum):
    """Whose a partition is. The values are the words of the JSON."""

    ASSIGNED = "assigned"
    UNASSIGNED = "unassigned"
    REMOVED = "removed"
    """Not there any more, or no longer subscribed to; its position is kept for when it returns."""


class Kind(Enum):
    """When a partition was found, which decides where it starts."""

    INITIAL = "initial"
    """By the first discovery: the user's initializer says where it starts."""
    NEW = "new"
    """Later: starts at the earliest offset, whatever the initializer."""


class PartitionState(NamedTuple):
    """One partition.

    *kind* is kept until the offsets are resolved, and ``None`` afterwards: an entry with a kind has no start yet.

    *start* is the offset that was resolved, or that the partition was last handed out with; no progress. ``None`` without a
    kind: only the reader knows it (an assigned partition of Flink's older states), and no one may resolve it again. *stop*
    is exclusive; ``None`` is no stop. *position* is the next offset to be read, ``None`` unless it is kept here.

    Of one that is new, *expects_zero* says that it was made while its topic was subscribed to: records are lost if its log does
    not begin at 0. That is decided when it is found, and kept as long as the kind.
    """

    status: Status
    start: int | None = None
    stop: int | None = None
    position: int | None = None
    kind: Kind | None = None
    expects_zero: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumeratorState:
    """All that has to survive a restart; immutable.

    *initial_discovery_finished* tells a discovery that found nothing from none at all. *topic_ids* has no entry for a topic
    of a broker without topic ids.
    """

    partitions: Mapping[TopicPartition, PartitionState] = field(
        default_factory=dict[TopicPartition, PartitionState]
    )
    topic_ids: Mapping[str, UUID] = field(default_factory=dict[str, UUID])
    initial_discovery_finished: bool = False

    def to_json(self) -> str:
        """The text of this state; the same for equal states."""
        return json.dumps(self.to_document(), separators=(",", ":"))

    def to_document(self) -> dict[str, Any]:
        """The JSON object of this state, for those who write its text themselves; its keys are in order."""
        entries = groupby(sorted(self.partitions.items()), key=lambda entry: entry[0].topic)
        topics = {
            topic: _topic_object(self.topic_ids.get(topic), [(at.partition, one) for at, one in of])
            for topic, of in entries
        }
        return {
            "version": VERSION,
            "initial_discovery_finished": self.initial_discovery_finished,
            "topics": topics,
        }

    @classmethod
    def from_json(cls, text: str) -> EnumeratorState:
        """The state that ``to_json`` has written.

        Raises :class:`~headrace.connect.errors.TaskFailedError` with a sentence for anything else, a newer version included.
        """
        try:
            document = json.loads(text)
        except ValueError as error:
            raise unreadable(f"this text is not one ({error})") from None
        return cls.from_document(document)

    @classmethod
    def from_document(cls, document: object) -> EnumeratorState:
        """The state whose ``to_document`` is *document*; raises as ``from_json`` does."""
        try:
            return _parsed(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise unreadable(f"this text is not one ({error})") from None


def unreadable(reason: str) -> TaskFailedError:
    """The error for a state that this headrace cannot read."""
    return TaskFailedError(
        f"The stored state of the partition discovery cannot be read: {reason}. Use the program that has written it, or a "
        "newer headrace."
    )


_POSITIONS: Final = {status.value: status for status in Status}
_KINDS: Final = {kind.value: kind for kind in Kind}
_FROM_ZERO: Final = "from_zero"
_OFFSETS: Final = ("start", "stop")
_KEYS: Final = frozenset({"id", *_POSITIONS, *_KINDS, _FROM_ZERO, *_OFFSETS})


def _topic_object(topic_id: UUID | None, entries: list[tuple[int, PartitionState]]) -> object:
    written: dict[str, Any] = {"id": topic_id_text(topic_id)} if topic_id else {}
    for status in Status:
        written[status.value] = {
            str(at): one.position for at, one in entries if one.status is status
        }
    for kind in Kind:
        written[kind.value] = [at for at, one in entries if one.kind is kind]
    written[_FROM_ZERO] = [at for at, one in entries if one.expects_zero]
    written["start"] = {str(at): one.start for at, one in entries if one.start is not None}
    written["stop"] = {str(at): one.stop for at, one in entries if one.stop is not None}
    return {key: value for key, value in written.items() if value}


def _parsed(document: Any) -> EnumeratorState:  # noqa: ANN401 (what JSON may be)
    version = document["version"]
    if version != VERSION:
        raise unreadable(f"its version is {version!r}, and this headrace reads version {VERSION}")
    topics = cast("dict[str, dict[str, Any]]", document["topics"])
    return EnumeratorState(
        partitions={
            place: one for topic, of in topics.items() for place, one in _entries(topic, of)
        },
        topic_ids={topic: _topic_id(of["id"]) for topic, of in topics.items() if "id" in of},
        initial_discovery_finished=_boolean(document["initial_discovery_finished"]),
    )


def _entries(
    topic: str, written: Mapping[str, Any]
) -> Iterator[tuple[TopicPartition, PartitionState]]:
    strange = written.keys() - _KEYS
    if strange:
        raise ValueError(f"the topic {topic} has {min(strange)!r}, which is no status")
    start, stop = (written.get(each, {}) for each in _OFFSETS)
    _check_numbers(topic, written)
    from_zero = frozenset(written.get(_FROM_ZERO, ()))
    kinds = {at: kind for word, kind in _KINDS.items() for at in written.get(word, ())}
    for word, status in _POSITIONS.items():
        for number, position in written.get(word, {}).items():
            yield (
                TopicPartition(topic, int(number)),
                PartitionState(
                    status,
                    _offset(start.get(number)),
                    _offset(stop.get(number)),
                    _offset(position),
                    kinds.get(int(number)),
                    int(number) in from_zero,
                ),
            )


def _check_numbers(topic: str, written: Mapping[str, Any]) -> None:
    """Each partition has one status, nothing is said of one that has none, and only new ones are to begin at 0."""
    with_status = [number for word in _POSITIONS for number in written.get(word, ())]
    numbers = frozenset(with_status)
    others = [str(number) for word in (*_KINDS, *_OFFSETS) for number in written.get(word, ())]
    if len(numbers) < len(with_status) or not numbers.issuperset(others):
        raise ValueError(f"the topic {topic} has a partition without a status, or with two")
    if not frozenset(written.get(Kind.NEW.value, ())).issuperset(written.get(_FROM_ZERO, ())):
        raise ValueError(f"the topic {topic} has a partition in {_FROM_ZERO!r} that is not new")


def _offset(value: object) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    raise ValueError(f"{value!r} is no offset")


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is neither true nor false")


def _topic_id(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))
