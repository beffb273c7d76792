"""A record that cannot be read or sent, and all that is needed to go on behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition, as_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """What a :class:`~headrace.connect.errors.RecordError` is about; with it ``errors.tolerance=all`` works (KIP-298).

    *source_offset* points behind the record, as that of every record does. *raw* is the record as it was
    read, ``None`` where its bytes cannot be had; *reference* says where they are, as JSON values, such as an
    object's name, its version and a range of bytes. *topic* is where the record would have been sent.
    *quarantines* says that it stands for all that is left of its object, which the offset says is not to be
    read.
    """

    source_partition: SourcePartition
    source_offset: SourceOffset | None
    topic: str | None = None
    raw: bytes | None = field(default=None, repr=False)
    reference: Mapping[str, OffsetValue] = field(default_factory=dict[str, OffsetValue])
    quarantines: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_partition", as_partition(self.source_partition))
