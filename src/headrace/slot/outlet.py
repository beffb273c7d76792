"""All that frames go through on their way to Kafka."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.kafka.sender import RecordSender, UnsendableError
from headrace.slot.boundary import Boundary
from headrace.slot.commits import Commits
from headrace.slot.dead_letters import class_name
from headrace.slot.encoding import Encoder
from headrace.slot.tolerance import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where frames go: how they are encoded, sent and made permanent."""

    encoder: Encoder
    sender: RecordSender
    commits: Commits
    boundary: Boundary
    tolerance: Tolerance

    def refused_by(self, error: RecordError, batch: SourceBatch) -> tuple[str, str]:
        """The stage (KIP-298) in which a row of *batch* is refused, and the class of what refuses it."""
        if isinstance(error, UnsendableError):
            return "KAFKA_PRODUCE", class_name(self.sender)
        stage, by = self.encoder.refused_by(batch)
        return stage, class_name(by)
