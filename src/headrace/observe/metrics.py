"""Metrics of one worker in the form that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.observe.counts import Counts, Seen
from headrace.observe.metric import Kind, Metric
from headrace.observe.metric_tables import OF_CONNECTOR, OF_TASK, OF_WORKER, TaskSeen, WorkerSeen
from headrace.observe.standings import ConnectorStanding, Standings

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of :meth:`Metrics.text`."""

_Labels = Mapping[str, str]
_T = TypeVar("_T")


class Metrics:
    """Tells what *counts* has counted and how connectors stand, when it is asked and not before.

    Any thread may ask. Two workers in one process have nothing in common.
    """

    def __init__(self, counts: Counts, standings: Standings) -> None:
        self._counts = counts
        self._standings = standings

    def text(self) -> str:
        """All metrics now, in Prometheus' text format."""
        # Not at the start: a worker that nobody measures does without.
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()

    def describe(self) -> Iterable[Family]:
        """Nothing: a registry that is made for one answer has no doubles to look for."""
        return ()

    def collect(self) -> Iterator[Family]:
        """Every metric that has a value; called by the registry."""
        connectors = self._standings()
        self._counts.keep([each.name for each in connectors])
        counts = self._counts.seen()
        worker = [(dict[str, str](), WorkerSeen(counts=counts, connectors=connectors))]
        yield from _families(OF_WORKER, worker)
        yield from _families(
            OF_CONNECTOR, [({"connector": each.name}, each) for each in connectors]
        )
        yield from _families(OF_TASK, _tasks(connectors, counts))


def _tasks(connectors: Sequence[ConnectorStanding], counts: Seen) -> list[tuple[_Labels, TaskSeen]]:
    states = {(each.name, task): state for each in connectors for task, state in each.tasks.items()}
    return [
        (
            {"connector": name, "task": str(task)},
            TaskSeen(state=states.get((name, task)), done=counts.tasks.get((name, task))),
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
            elif value is not None:
                family.add_sample(metric.name, dict(labels), value)
        if family.samples:
            yield family


def _family(metric: Metric[_T]) -> Family:
    from prometheus_client.metrics_core import Metric as Family  # noqa: PLC0415 (as above)

    if metric.kind is not Kind.COUNTER:
        return Family(metric.name, metric.doc, "gauge")
    # A counter of another name would get Prometheus' ending, and not be found by Kafka Connect's.
    named_so = metric.name.endswith("_total")
    return Family(
        metric.name.removesuffix("_total"), metric.doc, "counter" if named_so else "unknown"
    )
