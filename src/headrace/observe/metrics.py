"""All metrics, with Kafka Connect's groups and attributes, in Prometheus' format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from headrace.observe.counts import Counts, CountsSnapshot, Rebalances, TaskTotals
from headrace.observe.events import Amounts, TaskCounts

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family


_T = TypeVar("_T")


class Kind(Enum):
    """The kind of a value."""

    COUNTER = "counter"
    GAUGE = "gauge"
    WORD = "word"
    """Always 1; the word is a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Generic[_T]):
    """Kafka Connect's *attribute* of a *group*; *value* reads it, ``None`` if there is none. Pure.

    A metric that is measured in parts has one value for each, under the label *by*.
    """

    group: str
    attribute: str
    kind: Kind
    doc: str
    value: Callable[[_T], float | str | Mapping[str, float] | None]
    by: str = ""

    @property
    def name(self) -> str:
        """Its name for Prometheus."""
        return f"kafka_connect_{self.group}_{self.label}".replace("-", "_")

    @property
    def label(self) -> str:
        """The label for the word of a metric of that kind."""
        return self.attribute.replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSnapshot:
    """A connector's *state* and those of its *tasks*, by their numbers, with Kafka Connect's names.

    *version* is ``None`` while it is not known; *type* is ``source`` or ``unknown``.
    """

    name: str
    type: str
    class_name: str
    state: str
    version: str | None = None
    tasks: Mapping[int, str]


ConnectorSnapshots = Callable[[], Sequence[ConnectorSnapshot]]
"""Returns the current states of all connectors; called when metrics are requested, on that thread."""


_COUNTER, _GAUGE, _WORD = Kind.COUNTER, Kind.GAUGE, Kind.WORD
_ERRORS = "task-error-metrics"
_STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSnapshot:
    """The data of the worker's metrics."""

    counts: CountsSnapshot
    connectors: Sequence[ConnectorSnapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot:
    """The data of one task's metrics; *done* is ``None`` before its first progress."""

    state: str | None
    done: TaskTotals | None


def _worker(
    attribute: str, kind: Kind, doc: str, value: Callable[[WorkerSnapshot], float]
) -> Metric[WorkerSnapshot]:
    return Metric(
        group="connect-worker-metrics", attribute=attribute, kind=kind, doc=doc, value=value
    )


def _starts(seen: WorkerSnapshot) -> int:
    return seen.counts.starts + seen.counts.failed_starts


def _share(some: float, every: float) -> float:
    return some / every if every else 0.0


OF_WORKER: Final = (
    _worker("connector-count", _GAUGE, "Connectors of this worker.", lambda w: len(w.connectors)),
    _worker(
        "task-count",
        _GAUGE,
        "Tasks of this worker.",
        lambda w: sum(len(each.tasks) for each in w.connectors),
    ),
    _worker(
        "connector-startup-attempts-total",
        _COUNTER,
        "Starts of connectors that were tried.",
        _starts,
    ),
    _worker(
        "connector-startup-success-total",
        _COUNTER,
        "Starts of connectors that succeeded.",
        lambda w: w.counts.starts,
    ),
    _worker(
        "connector-startup-success-percentage",
        _GAUGE,
        "The share of starts that succeeded, from 0 to 1.",
        lambda w: _share(w.counts.starts, _starts(w)),
    ),
    _worker(
        "connector-startup-failure-total",
        _COUNTER,
        "Starts of connectors that failed.",
        lambda w: w.counts.failed_starts,
    ),
    _worker(
        "connector-startup-failure-percentage",
        _GAUGE,
        "The share of starts that failed, from 0 to 1.",
        lambda w: _share(w.counts.failed_starts, _starts(w)),
    ),
)


def _group(
    attribute: str,
    doc: str,
    value: Callable[[Rebalances], float | str | None],
    kind: Kind = _GAUGE,
) -> Metric[Rebalances]:
    return Metric(
        group="connect-worker-rebalance-metrics",
        attribute=attribute,
        kind=kind,
        doc=doc,
        value=value,
    )


OF_GROUP: Final = (
    _group(
        "leader-name", "The URL of the group's leader.", lambda r: r.last and r.last.leader, _WORD
    ),
    _group("epoch", "The group's generation.", lambda r: r.last and r.last.generation),
    _group(
        "connect-protocol",
        "The value of `connect.protocol` that the workers have agreed on.",
        lambda r: r.last and r.last.protocol,
        _WORD,
    ),
    _group(
        "completed-rebalances-total",
        "Rebalances that the worker has completed.",
        lambda r: r.times.count,
        _COUNTER,
    ),
    _group(
        "rebalancing", "1 while the group is being rebalanced, else 0.", lambda r: r.is_under_way
    ),
    _group(
        "rebalance-max-time-ms",
        "The longest rebalance since the worker began.",
        lambda r: _most_ms(r.times) if r.times.count else None,
    ),
    _group(
        "rebalance-avg-time-ms",
        "How long a rebalance takes, from when the worker begins to join until its assignment is in force.",
        lambda r: _average_ms(r.times) if r.times.count else None,
    ),
    _group(
        "time-since-last-rebalance-ms",
        "How long ago the last rebalance was completed; infinite before the first.",
        lambda r: r.seconds_ago * 1000,
    ),
)


def _tasks_in(state: str) -> Callable[[ConnectorSnapshot], float]:
    return lambda connector: sum(each.lower() == state for each in connector.tasks.values())


def _connector(
    attribute: str, doc: str, value: Callable[[ConnectorSnapshot], str | None]
) -> Metric[ConnectorSnapshot]:
    return Metric(group="connector-metrics", attribute=attribute, kind=_WORD, doc=doc, value=value)


OF_CONNECTOR: Final[Sequence[Metric[ConnectorSnapshot]]] = (
    Metric(
        group="connect-worker-metrics",
        attribute="connector-total-task-count",
        kind=_GAUGE,
        doc="Tasks of the connector.",
        value=lambda connector: len(connector.tasks),
    ),
    *(
        Metric(
            group="connect-worker-metrics",
            attribute=f"connector-{state}-task-count",
            kind=_GAUGE,
            doc=f"Tasks of the connector that are {state}.",
            value=_tasks_in(state),
        )
        for state in _STATES
    ),
    _connector("status", "The connector's state.", lambda c: c.state.lower()),
    _connector("connector-type", "`source`, or `unknown`.", lambda c: c.type),
    _connector("connector-class", "The class, as configured.", lambda c: c.class_name),
    _connector("connector-version", "The version of the class.", lambda c: c.version),
)


def _total(count: Callable[[TaskCounts], int]) -> Callable[[TaskSnapshot], float | None]:
    return lambda task: task.done.total(count) if task.done else None


def _copied(
    attribute: str, what: str, count: Callable[[TaskCounts], Counter[str]]
) -> Metric[TaskSnapshot]:
    return Metric(
        group="source-task-metrics",
        attribute=attribute,
        kind=_COUNTER,
        doc=f"{what} that a mirror has copied as such, by the label `way`: `forwarded` as they were, or why they were "
        "rebuilt (`gap`, `too large`, `small` and put together with others, `log append time`, `old format`, `starts before "
        "the position`). Not in Kafka Connect.",
        value=lambda task: task.done.total(count) if task.done else None,
        by="way",
    )


def _of_batch(
    of: Callable[[TaskCounts], Amounts], value: Callable[[Amounts], float]
) -> Callable[[TaskSnapshot], float | None]:
    """A value of the current or last micro-batch; ``None`` before anything was counted."""

    def found(task: TaskSnapshot) -> float | None:
        amounts = of(task.done.now) if task.done else None
        return value(amounts) if amounts and amounts.count else None

    return found


def _average(amounts: Amounts) -> float:
    return amounts.total / amounts.count


def _most(amounts: Amounts) -> float:
    return amounts.most


def _average_ms(amounts: Amounts) -> float:
    return _average(amounts) * 1000


def _most_ms(amounts: Amounts) -> float:
    return amounts.most * 1000


def _active(task: TaskSnapshot) -> float | None:
    if task.done is None:
        return None
    now = task.done.now
    return max(0, now.polled_records - now.committed_records - now.skipped - now.dead_lettered)


def _failed_at_ms(task: TaskSnapshot) -> float | None:
    return task.done.failed_at_ms if task.done else None


def _task(
    attribute: str,
    doc: str,
    value: Callable[[TaskSnapshot], float | str | None],
    kind: Kind = _GAUGE,
) -> Metric[TaskSnapshot]:
    return Metric(
        group="connector-task-metrics", attribute=attribute, kind=kind, doc=doc, value=value
    )


def _source(
    attribute: str, doc: str, value: Callable[[TaskSnapshot], float | None], kind: Kind = _GAUGE
) -> Metric[TaskSnapshot]:
    return Metric(group="source-task-metrics", attribute=attribute, kind=kind, doc=doc, value=value)


def _errors(attribute: str, doc: str, count: Callable[[TaskCounts], int]) -> Metric[TaskSnapshot]:
    return Metric(group=_ERRORS, attribute=attribute, kind=_COUNTER, doc=doc, value=_total(count))


OF_TASK: Final = (
    _task("status", "The task's state.", lambda t: t.state and t.state.lower(), _WORD),
    _task(
        "offset-commit-max-time-ms",
        "The longest commit.",
        _of_batch(lambda c: c.commits, _most_ms),
    ),
    _task(
        "offset-commit-avg-time-ms",
        "How long a commit takes.",
        _of_batch(lambda c: c.commits, _average_ms),
    ),
    _task("batch-size-max", "The most records of a poll.", _of_batch(lambda c: c.batches, _most)),
    _task("batch-size-avg", "The records of a poll.", _of_batch(lambda c: c.batches, _average)),
    _source(
        "source-record-poll-total",
        "Records that were polled, bad ones and those that are sent again included.",
        _total(lambda c: c.polled_records),
        _COUNTER,
    ),
    _source(
        "source-record-write-total",
        "Records that are committed in Kafka.",
        _total(lambda c: c.committed_records),
        _COUNTER,
    ),
    _source(
        "source-offset-update-total",
        "Source offsets that are committed without a record, because the task moved them (KIP-910). Not in Kafka "
        "Connect.",
        _total(lambda c: c.moved_offsets),
        _COUNTER,
    ),
    _copied("source-batch-copied-total", "Record batches", lambda c: c.copied_batches),
    _copied("source-batch-copied-bytes-total", "Bytes of record batches", lambda c: c.copied_bytes),
    _source(
        "source-record-active-count", "Records that were polled and are not committed yet.", _active
    ),
    _source(
        "poll-batch-max-time-ms",
        "The longest poll that returned records.",
        _of_batch(lambda c: c.polls, _most_ms),
    ),
    _source(
        "poll-batch-avg-time-ms",
        "How long a poll takes that returns records.",
        _of_batch(lambda c: c.polls, _average_ms),
    ),
    _source(
        "transaction-size-min",
        "The fewest records of a transaction; exactly-once only.",
        _of_batch(lambda c: c.transaction_sizes, lambda amounts: amounts.least),
    ),
    _source(
        "transaction-size-max",
        "The most records of a transaction; exactly-once only.",
        _of_batch(lambda c: c.transaction_sizes, _most),
    ),
    _source(
        "transaction-size-avg",
        "The records of a transaction; exactly-once only.",
        _of_batch(lambda c: c.transaction_sizes, _average),
    ),
    _errors(
        "total-record-failures",
        "How often reading, transforming, converting or sending failed: `total-record-errors` and `total-retries`.",
        lambda c: c.record_errors + c.retries,
    ),
    _errors(
        "total-record-errors",
        "Bad records that were found, those that failed the task included; one that is read again counts again.",
        lambda c: c.record_errors,
    ),
    _errors(
        "total-records-skipped",
        "Bad records that were passed over, dead letters included.",
        lambda c: c.skipped + c.dead_lettered,
    ),
    _errors(
        "total-retries",
        "How often records or batches were retried, within `errors.retry.timeout`.",
        lambda c: c.retries,
    ),
    _errors(
        "total-errors-logged",
        "Bad records that were logged, see `errors.log.enable`.",
        lambda c: c.errors_logged,
    ),
    _errors(
        "deadletterqueue-produce-requests",
        "Records in the topic of dead letters.",
        lambda c: c.dead_lettered,
    ),
    _errors(
        "deadletterqueue-produce-failures",
        "Dead letters that could not be written; each fails the task.",
        lambda c: c.dead_letters_failed,
    ),
    Metric(
        group=_ERRORS,
        attribute="last-error-timestamp",
        kind=_GAUGE,
        doc="When the last error was reported, in milliseconds since 1970; 0 for none.",
        value=_failed_at_ms,
    ),
)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of :meth:`Metrics.text`."""

_Labels = Mapping[str, str]


class Metrics:
    """Collects the metrics from *counts* and the connectors' states on request.

    Any thread may call. Workers in one process share nothing.
    """

    def __init__(self, counts: Counts, connector_snapshots: ConnectorSnapshots) -> None:
        self._counts = counts
        self._connector_snapshots = connector_snapshots

    def text(self) -> str:
        """All metrics now, in Prometheus' text format."""
        # Imported on the first request: a worker without monitoring does not need it.
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()

    def describe(self) -> Iterable[Family]:
        """Nothing: a registry for a single answer needs no check for duplicates."""
        return ()

    def collect(self) -> Iterator[Family]:
        """Every metric that has a value; called by the registry."""
        connectors = self._connector_snapshots()
        self._counts.keep([each.name for each in connectors])
        counts = self._counts.snapshot()
        worker = [(dict[str, str](), WorkerSnapshot(counts=counts, connectors=connectors))]
        yield from _families(OF_WORKER, worker)
        yield from _families(
            OF_GROUP, [] if counts.rebalances is None else [({}, counts.rebalances)]
        )
        yield from _families(
            OF_CONNECTOR, [({"connector": each.name}, each) for each in connectors]
        )
        yield from _families(OF_TASK, _tasks(connectors, counts))


def _tasks(
    connectors: Sequence[ConnectorSnapshot], counts: CountsSnapshot
) -> list[tuple[_Labels, TaskSnapshot]]:
    states = {(each.name, task): state for each in connectors for task, state in each.tasks.items()}
    return [
        (
            {"connector": name, "task": str(task)},
            TaskSnapshot(state=states.get((name, task)), done=counts.tasks.get((name, task))),
        )
        for name, task in sorted(states.keys() | counts.tasks.keys())
    ]


def _families(
    metrics: Sequence[Metric[_T]], subjects: Sequence[tuple[_Labels, _T]]
) -> Iterator[Family]:
    for metric in metrics:
        family = _family(metric)
        for labels, subject in subjects:
            value = metric.value(subject)
            if isinstance(value, str):
                family.add_sample(metric.name, {**labels, metric.label: value}, 1)
            elif isinstance(value, Mapping):
                for part, number in value.items():
                    family.add_sample(metric.name, {**labels, metric.by: part}, number)
            elif value is not None:
                family.add_sample(metric.name, dict(labels), value)
        if family.samples:
            yield family


def _family(metric: Metric[_T]) -> Family:
    from prometheus_client.metrics_core import Metric as Family  # noqa: PLC0415 (as above)

    if metric.kind is not Kind.COUNTER:
        return Family(metric.name, metric.doc, "gauge")
    # Prometheus' suffix would be added to the name of another counter, which would no longer be Kafka Connect's.
    named_so = metric.name.endswith("_total")
    return Family(
        metric.name.removesuffix("_total"), metric.doc, "counter" if named_so else "unknown"
    )
