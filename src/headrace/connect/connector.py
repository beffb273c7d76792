"""The contract of source connectors: settings, tasks or a plan, and what a connector promises to the runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Protocol

from headrace.connect.config import Config, Problem
from headrace.connect.errors import ConnectError, PartitionError
from headrace.connect.group_offsets import GroupEntry, OffsetGroup
from headrace.connect.partition import KnownOffsets, OffsetReader, SourceOffset, SourcePartition
from headrace.connect.record import RecordSchemas
from headrace.connect.task import Offsets, SourceTask, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One object of a source, and what a plan would do with it. Made by a connector's ``explain``.

    *slots* are the tasks that would read it, from 0; without any, nothing of it is read, and *reason* says
    why. *size* is how much would be read, in bytes or in a unit that all of the connector's pieces have. *fails*
    says that the connector would fail because of it. ``None`` means that the connector does not know.
    """

    name: str
    slots: Sequence[int] = ()
    topic: str | None = None
    partition: int | None = None
    form: str | None = None
    size: int | None = None
    reason: str | None = None
    fails: bool = False


class ExactlyOnceSupport(Enum):
    """A connector's own statement whether it can be exactly-once with a given configuration."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorContext(Protocol):
    """What the runtime gives to a connector; every method may be called from any thread."""

    @property
    def offsets(self) -> KnownOffsets:
        """The committed source offsets of this connector."""
        ...

    @property
    def target(self) -> Mapping[str, str]:
        """Settings of an admin client of the cluster that the tasks write to, under the Java clients' names.

        Empty where nothing will be written. Holds secrets.
        """
        ...

    @property
    def command_options(self) -> str:
        """The options by which ``headrace`` commands reach the worker of this connector, as a shell takes them.

        For sentences that name a command; empty for a worker at the address that commands use by default.
        """
        ...

    def request_task_reconfiguration(self) -> None:
        """Ask for new task configurations, or a new plan, soon; returns at once.

        Running tasks commit what they have read and end: polled ones, and those of followed shares, at once, other
        planned ones where resuming later costs little (:meth:`~headrace.connect.task.SourceTask.resumes_cheaply`).
        """
        ...

    def raise_error(self, error: Exception) -> None:
        """Fail the connector from a thread of its own; returns at once.

        Running tasks commit what they have read and end; then the connector fails with *error*,
        the first one if there are several.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the runtime asks of a planned connector: work for at most *slots* tasks.

    *offsets* are the committed ones, read after every older owner was fenced. *unnamed* are entries of the connector's
    consumer group (:meth:`SourceConnector.offset_group`) that its codec has not made: others have written them.
    *failed* are the source partitions that tasks could not read on since the last plan, and why: they are given once, but again
    after a ``plan`` that raised, and may not be in the shares of this plan.
    """

    slots: int
    offsets: KnownOffsets
    unnamed: Sequence[GroupEntry] = ()
    failed: Mapping[SourcePartition, PartitionError] = field(
        default_factory=dict[SourcePartition, PartitionError]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Work for one micro-batch: the splits of each slot, and offsets that change without work.

    No shares, or only empty ones, mean that there is nothing to read now. *offsets* are committed by the
    driver before any of the work begins. The runtime refuses a plan that gives one source partition to two
    slots, or changes the offset of one that a slot reads.
    *total_bytes* is the size of all shares, for progress; ``None`` when it is not known. *objects* are the names of
    the files or other objects that they read, for counting: each name once, also if it is read in several pieces.

    *ask_again_after* marks an empty plan as "nothing yet": there is something that can be read only after that many
    seconds (more than 0). The runtime plans again then, or earlier, at its usual interval; a run that ends with its
    work does not end before that. ``None``: there is nothing to wait for.

    *has_more* says that there is more to read than this plan covers; the next plan, which is made as soon as this
    one's work is done, reads it. It is only displayed.

    *followed* says that the shares have no end: records keep coming, as in the partitions of a topic. Their tasks stay
    in their slots, also while there is nothing for some of them, until the runtime asks all of them to end: when none
    has had anything for ``poll.linger.ms``, when others need the slots, when the connector requests a new plan, or when
    it stops. As there is no other plan until then, every source partition that is known belongs into a share, not only
    those with something to read, and a connector that finds new ones requests a new plan. The plan after that is empty
    only if there is nothing to read in any of them: no Spark job runs then, and the connector is asked for a plan
    every ``headrace.idle.poll.ms``.

    *failure* says why a part of the source is not read although the rest is, as far as the plan has work: the connector is
    FAILED, with this trace, while its tasks run, until it returns a plan without one. Each line of its message is logged once, when
    it is new. A run that ends with its work, or is stopped by its worker, ends with this failure. Raise it instead where nothing is
    left to read.
    """

    shares: Sequence[Sequence[Split]] = ()
    offsets: Offsets = field(default_factory=dict)
    total_bytes: int | None = None
    objects: Sequence[str] = ()
    ask_again_after: float | None = None
    has_more: bool = False
    followed: bool = False
    failure: ConnectError | None = None

    def has_work(self) -> bool:
        """Whether any slot would have something to read."""
        return any(self.shares)


class SourceConnector(ABC):
    """Describes a source: one instance lives on the driver while the connector is running.

    This form is *polled*: each task polls inside its slot. For a source whose work can be listed, extend
    :class:`PlannedConnector`. The runtime calls ``initialize``, ``start``, the other methods, and finally ``stop``,
    all from one thread. The methods that take *props* may be called on an instance that was never started.
    """

    config_class: ClassVar[type[Config]]
    """The settings; the runtime validates a configuration against them before anything starts."""

    task_class: ClassVar[type[SourceTask]]
    """Instantiated for each micro-batch, by its module and name, in another process."""

    version: ClassVar[str] = "0"

    passed_on: ClassVar[tuple[str, ...]] = ()
    """Beginnings of keys that the connector passes on to something else, such as its own Kafka clients.

    No warning says of a key that begins so that it is unknown, although no setting declares it.
    """

    context: ConnectorContext

    def initialize(self, context: ConnectorContext) -> None:
        """Called once, before ``start``. Keeps *context*; an override calls this one too."""
        self.context = context

    @abstractmethod
    def start(self, props: Mapping[str, str]) -> None:
        """Take the configuration, which has been validated. Should not block for long.

        Raises :class:`~headrace.connect.errors.RetriableError` when the source is away for now: ``stop`` is
        called, and a little later a new instance is started in its place, until one succeeds. Any other
        error fails the connector.
        """

    def problems(self, props: Mapping[str, str]) -> Sequence[Problem]:
        """What is wrong with *props*, as ``(key, sentence)``, by default according to ``config_class``.

        Called before a connector may start. An override adds problems that the settings alone do not show.
        """
        return self.config_class.problems(props)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One configuration per task, at most *max_tasks*. Called before each micro-batch, so it is cheap."""
        raise TypeError(
            f"{type(self).__name__} must say what its tasks are: override task_configs."
        )

    def has_work(self, offsets: OffsetReader) -> bool | None:
        """Whether polling would find something: a cheap probe, called on the driver while the tasks are idle.

        No micro-batch starts while it returns ``False``. ``None`` (the default) means that only polling can find out:
        idle tasks are started less and less often (``poll.idle.max.ms``), as they are while this returns ``True``
        and they find nothing. Raises when the source cannot be reached: ``False`` means that there is nothing.
        """
        return None

    def stop(self) -> None:
        """Release what ``start`` took; called once, also when ``start`` raised."""

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether this configuration can be exactly-once (KIP-618); ``None`` means that the connector does not say."""
        return None

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """Whether the tasks use the transaction context with this configuration (KIP-618)."""
        return False

    def offset_group(self, props: Mapping[str, str]) -> OffsetGroup | None:
        """The consumer group on the target cluster that holds the source offsets with this configuration (KIP-656).

        ``None`` (the default): they are in the worker's offset store, or in the topic that ``offsets.storage.topic``
        names, which may not be set beside a group. With a group, :attr:`ExactlyOnceSupport.UNSUPPORTED` from
        :meth:`exactly_once_support` makes the tasks write without transactions, and commit offsets after their records
        are acknowledged. Pure: called on an instance that is not started, before each start and for each request about
        offsets.
        """
        return None

    def returns_encoded(self, props: Mapping[str, str]) -> bool:
        """Whether the tasks return :class:`~headrace.connect.encoded.EncodedBatches` where they may.

        Tasks may not return encoded batches with converters that are not for bytes, or transformations: they look at
        :attr:`~headrace.connect.task.TaskContext.takes_encoded`, and return decoded records then. Pure, and called with
        properties that are not valid, too.
        """
        return False

    def returns_bytes(self, props: Mapping[str, str]) -> bool:
        """Whether keys, values and headers are bytes as they are to be written, with this configuration.

        The default converters of such a connector are those for bytes, whatever the worker's are. By default so for those
        that pass record batches on. Pure, as :meth:`returns_encoded`.
        """
        return self.returns_encoded(props)

    def schemaless(self, props: Mapping[str, str]) -> str | None:
        """What kind of values certainly have no schema with this configuration, in words such as "JSON lines".

        A converter that needs a schema is then refused before anything starts, instead of failing at the first record.
        ``None`` (the default): there are no such values, or the connector does not know. Pure.
        """
        return None

    def record_schemas(self, props: Mapping[str, str]) -> RecordSchemas | None:
        """The schemas of all records with this configuration, where they are known before one is read.

        Called when something needs them beforehand, such as Spark SQL; records of other schemas are then
        refused where they appear. ``None`` (the default) means that they are not known: values are taken to be text
        or JSON documents. Pure: called on an instance that is not started.
        """
        return None

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """Refuse offsets that the tasks could not resume from, with a sentence.

        Pure: reads nothing, changes nothing, and may be called often, for dry runs too. Raises
        :class:`~headrace.connect.errors.OffsetsError`. *offsets* have the types that the store returns.
        """

    def check_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """Refuse offsets that the source does not have, as far as it can be asked now, with a sentence.

        Called for a request that sets offsets, in a dry run too, after :meth:`validate_offsets`; not when one is undone. May look
        at the source, but changes nothing. Raises :class:`~headrace.connect.errors.OffsetsError`; not because the source is away.
        """

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """Change external state before *offsets* are written (KIP-875); ``True`` if they then fit the source.

        Called once just before the write, never in a dry run. May raise
        :class:`~headrace.connect.errors.OffsetsError` to refuse. ``False`` (the default) means that the
        connector does not know whether the offsets fit the source.
        """
        return False

    def lag(
        self, props: Mapping[str, str], offsets: Mapping[SourcePartition, SourceOffset]
    ) -> Mapping[SourcePartition, int]:
        """How much is left to read after *offsets*, for display: bytes, or whatever the source counts.

        Partitions whose lag is not known are left out; by default all of them. Called on an instance that
        is not started, also while another one runs. May look at the source, but changes nothing.
        """
        return {}


class PlannedConnector(SourceConnector):
    """A source whose work the driver lists and shares out: files, partitions, ranges of a table.

    No Spark job starts while a plan has no work. Tasks get their share as ``context.splits`` and the
    connector's own configuration.
    """

    @abstractmethod
    def plan(self, request: PlanRequest) -> Plan:
        """What to read next. Called on the driver before each micro-batch, and at intervals while idle.

        Not called while slots follow the shares of a plan (:attr:`Plan.followed`), which may be for days.

        May block on the network for a listing, but does not sleep: for work that has to wait it sets
        ``ask_again_after``. The same source and the same offsets give the same plan. Raises when the source
        cannot be listed: an empty plan means that all has been read.
        """

    def explain(self, request: PlanRequest) -> Iterator[Explained]:
        """What :meth:`plan` would do, object by object, for ``headrace explain``: nothing runs.

        Called after ``start``, once, instead of ``plan``. Override it to report what else there is, and why it
        is not read; by default it yields the plan's source partitions. Raises what ``plan`` raises.
        """
        for slot, share in enumerate(self.plan(request).shares):
            for split in share:
                named = ", ".join(f"{key} {value}" for key, value in split.partition.items())
                yield Explained(name=named, slots=(slot,))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Not called for a planned connector: its plan determines its tasks."""
        return ()
