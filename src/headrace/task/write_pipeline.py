"""The write pipeline: everything that frames pass on their way to Kafka: converters, topic creation, error tolerance, commits."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.record import BytesRecord
from headrace.connect.task import SourceTask
from headrace.converters import make_converter, make_header_converter
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.sender import (
    BatchForwarder,
    EncodedRecords,
    GroupSender,
    RecordSender,
    Sender,
    UnsendableError,
)
from headrace.task.channel import ChannelClient
from headrace.task.commit_hooks import MakesRecords, overrides
from headrace.task.dead_letters import class_name
from headrace.task.encoding import Encoder
from headrace.task.error_handling import ErrorTolerance, RetryWithBackoff
from headrace.task.slot_report import Progress
from headrace.task.slot_work import SlotWork
from headrace.task.topic_creation import TopicCreation
from headrace.task.transaction_boundary import Boundary
from headrace.task.transactions import CommitStrategy, make_commit_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePipeline:
    """How frames are encoded, sent and committed. *forwarder* sends encoded batches, where tasks may return them."""

    encoder: Encoder
    sender: RecordSender
    commits: CommitStrategy
    boundary: Boundary
    tolerance: ErrorTolerance
    forwarder: BatchForwarder | None = None

    def forward(self, batches: EncodedBatches) -> int:
        """Hand over *batches*; returns how many records they hold."""
        assert self.forwarder is not None, "the poll loop refuses encoded batches without one"
        return self.forwarder.send_batches(batches)

    @property
    def has_many_refused(self) -> bool:
        """Whether the records that were refused hold too much memory to wait for the commit."""
        return self.forwarder is not None and self.forwarder.has_many_refused

    def pass_over_refused(self) -> int:
        """Skip copied records that were refused, or send them as dead letters; returns how many of those sent were not written.

        Called before each commit, and while :attr:`has_many_refused`.
        """
        if self.forwarder is None or not self.tolerance.is_on:
            return 0
        unwritten, by = 0, class_name(self.sender)
        # Dead letters may be refused, too, and so may batches that were behind others.
        while refused := self.forwarder.refused():
            for each in refused:
                self.tolerance.pass_over(each, by)
                unwritten += each.handed_over
        return unwritten

    def write_for_commit(self, made: MakesRecords) -> None:
        """Hand over the records that are *made* of where those that were sent since the last commit have landed."""
        assert self.forwarder is not None, "offsets are in a group where this is asked for"
        by_place = dict[tuple[str, int], list[BytesRecord]]()
        for each in made(self.forwarder.copied_runs()):
            by_place.setdefault((each.topic, each.partition), []).append(each)
        for (topic, partition), records in by_place.items():
            self.commits.before_records(topic)
            encoded = EncodedRecords(
                topic=topic,
                partition=partition,
                keys=pa.array([each.key for each in records], pa.binary()),
                values=pa.array([each.value for each in records], pa.binary()),
            )
            try:
                self.sender.send(encoded)
            except RecordError as error:
                # No record that was read is the reason.
                raise TaskFailedError(
                    f"What the task adds to a commit cannot be written: {error}"
                ) from error

    def refused_by(self, error: RecordError, batch: SourceBatch) -> tuple[str, str]:
        """The stage (KIP-298) in which a row of *batch* is refused, and the class that refuses it."""
        if isinstance(error, UnsendableError):
            return "KAFKA_PRODUCE", class_name(self.sender)
        stage, by = self.encoder.refused_by(batch)
        return stage, class_name(by)


def make_write_pipeline(
    work: SlotWork,
    sender: Sender,
    client: ChannelClient,
    progress: Progress,
    *,
    task: SourceTask,
    retrying: RetryWithBackoff,
) -> WritePipeline:
    """The write pipeline for *work* of *task*, which sends by *sender*; conversions are retried by *retrying*.

    The first commit interval starts here. Raises what converters raise for invalid settings.
    """
    commits = make_commit_strategy(work, sender, client)
    forwarder = sender if isinstance(sender, GroupSender) else None
    if forwarder is not None and work.spec.errors.tolerate:
        forwarder.tolerate_refused()
    return WritePipeline(
        sender=_record_sender(work, sender, task),
        forwarder=forwarder,
        commits=commits,
        tolerance=ErrorTolerance(
            work.spec.errors,
            progress,
            sender=sender,
            commits=commits,
            connector=work.spec.name,
            task=work.task,
            secrets=work.spec.secrets,
        ),
        boundary=Boundary.begun(work, time.monotonic()),
        encoder=_encoder(work, task, retrying),
    )


def _encoder(work: SlotWork, task: SourceTask, retrying: RetryWithBackoff) -> Encoder:
    key, value, header = (
        work.spec.key_converter,
        work.spec.value_converter,
        work.spec.header_converter,
    )
    return Encoder(
        make_converter(key.class_name, key.config, is_key=True),
        make_converter(value.class_name, value.config, is_key=False),
        make_header_converter(header.class_name, header.config),
        retrying=retrying,
        tells_origin=overrides(task, "records_of_commit"),
    )


def _record_sender(work: SlotWork, sender: Sender, task: SourceTask) -> RecordSender:
    spec = work.spec
    if not spec.topic_groups:
        return sender
    admin = KafkaAdmin(client_config(spec.admin))
    return TopicCreation(sender, admin, spec.topic_groups, check=task.check_new_topic)
