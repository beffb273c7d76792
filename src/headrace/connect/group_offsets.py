"""Source offsets as entries of a consumer group on the cluster that a connector writes to (KIP-656)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.connect.partition import SourceOffset, SourcePartition


class GroupEntry(NamedTuple):
    """What a group has committed for one partition of the cluster that holds the group.

    *metadata* is text of the committer's, at most 4,096 bytes with the broker's usual settings. *leader_epoch* is -1
    where it is not known.
    """

    topic: str
    partition: int
    offset: int
    metadata: str = ""
    leader_epoch: int = -1

    @property
    def place(self) -> tuple[str, int]:
        """Topic and partition: a group has one entry for each."""
        return self.topic, self.partition


class GroupOffsetCodec(ABC):
    """Source partitions and offsets as entries of a consumer group, and back.

    Made from the settings in :class:`OffsetGroup`, on the driver and in every slot, by its module and name. Pure: it
    asks no one, and gives the same answer each time. Different source partitions have different places.
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        self.config = config

    @abstractmethod
    def entry(self, partition: SourcePartition, offset: SourceOffset) -> GroupEntry:
        """The entry that stores *offset*. Its place is that of *partition*, and exists when it is committed.

        Raises :class:`~headrace.connect.errors.OffsetsError`, with a sentence, for what no entry can hold.
        """

    @abstractmethod
    def place(self, partition: SourcePartition) -> tuple[str, int]:
        """Topic and partition of the entry of *partition*, whatever its offset is; raises as :meth:`entry` does."""

    @abstractmethod
    def source(self, entry: GroupEntry) -> tuple[SourcePartition, SourceOffset] | None:
        """What *entry* stores; ``None`` for one that this codec has not made.

        Such an entry is no committed offset: it stays as it is, until an offset is committed in its place. A planned
        connector sees it in :attr:`~headrace.connect.connector.PlanRequest.unnamed`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetGroup:
    """Where a connector wants its source offsets: in the consumer group *group_id*, on the cluster that it writes to.

    Nobody may consume with that group. *codec* is the path ``module:Class`` of a :class:`GroupOffsetCodec`, *config*
    are its settings, which hold no secrets: they travel to the slots and may be logged.
    """

    group_id: str
    codec: str
    config: Mapping[str, str] = field(default_factory=dict[str, str])
