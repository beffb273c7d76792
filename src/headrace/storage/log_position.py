"""Where a record of an offsets topic lies. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """Where a record lies in its topic; records of one partition of the topic are ordered by offset."""

    partition: int
    offset: int
    timestamp: int

    def is_after(self, other: LogPosition) -> bool:
        """Whether this record was written later, as far as the log can tell."""
        if self.partition == other.partition:
            return self.offset > other.offset
        return (self.timestamp, self.partition) > (other.timestamp, other.partition)
