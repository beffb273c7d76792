"""How far flows are, for people and for programs, with the last errors of workers that answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Final, Self

import msgspec

from headrace.cli.connectors import Status
from headrace.cli.explain import offsets_in_topic
from headrace.cli.mirror_flows import FlowWorker
from headrace.cli.rest_client import LoginError, NoWorkerError, RestClient, WorkerError
from headrace.cli.table import table
from headrace.mirror.dedicated import SOURCE_CONNECTOR
from headrace.mirror.flow_status import FlowReader, FlowStatus, FormerOffsets, PartitionStatus
from headrace.mirror.settings import MirrorSourceConfig

_FAILED: Final = "FAILED"
_COLUMNS: Final = ("flow", "topic", "partition", "end", "copied", "lag", "seconds", "note")
# A worker on this machine, or near.
_WORKER_SECONDS: Final = 2.0


class _Expanded(msgspec.Struct, frozen=True):
    """One of ``GET /connectors?expand=status``."""

    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAnswer:
    """What the worker of a flow says: why its connectors have failed, by their names; or why it could not be asked."""

    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFlow:
    """A flow at one time: how far it is, and what its worker says; ``None`` if none answers."""

    status: FlowStatus
    worker: WorkerAnswer | None
    now_ms: float

    @property
    def has_problem(self) -> bool:
        """Whether a cluster did not answer."""
        return bool(self.status.problems)

    @property
    def lag(self) -> int | None:
        """The records, or offsets, that are not copied yet, where they are known."""
        known = [each.lag for each in self.status.partitions if each.lag is not None]
        is_unknown = self.status.problems or self.status.partitions
        return None if is_unknown and not known else sum(known)

    @property
    def seconds(self) -> float | None:
        """For how long the oldest of them waits."""
        known = (each.seconds(self.now_ms) for each in self.status.partitions)
        return max((each for each in known if each is not None), default=None)


class FlowWatcher:
    """Looks at flows as often as it is asked; used by one thread, as a context manager."""

    def __init__(self, flows: Sequence[FlowWorker]) -> None:
        self._flows = [each for each in flows if _source(each) is not None]
        self._readers: dict[str, FlowReader] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        for each in self._flows:
            config = _source(each)
            assert config is not None
            reader = FlowReader(config, each.config.client("admin"), _former(each))
            self._readers[each.name] = self._opened.enter_context(closing(reader))
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def seen(self, now_ms: float) -> list[SeenFlow]:
        """The flows as they are now; asked side by side, so that one that is away does not keep the others waiting."""

        def of(flow: FlowWorker) -> SeenFlow:
            status = self._readers[flow.name].status()
            return SeenFlow(status=status, worker=_worker_answer(flow.url), now_ms=now_ms)

        with ThreadPoolExecutor(max(1, len(self._flows))) as asking:
            return list(asking.map(of, self._flows))


def _source(flow: FlowWorker) -> MirrorSourceConfig | None:
    return None if flow.source is None else MirrorSourceConfig.parse(flow.source.props)


def _former(flow: FlowWorker) -> FormerOffsets | None:
    topic = flow.config.offset_storage_topic
    if topic is None:
        return None
    return FormerOffsets(topic, lambda: offsets_in_topic(flow.config, topic, SOURCE_CONNECTOR))


def _worker_answer(url: str | None) -> WorkerAnswer | None:
    if url is None:
        return None
    try:
        with RestClient(url, seconds=_WORKER_SECONDS) as worker:
            answer = worker.get("connectors", expand="status")
            found = worker.understood(answer, dict[str, _Expanded])
    except NoWorkerError:
        # That nothing runs is no problem of this command.
        return None
    except LoginError:
        told = (
            f"The worker at {url} answers only its users: 'headrace connectors status --url {url} --user NAME' shows what "
            "has failed."
        )
        return WorkerAnswer(problem=told)
    except WorkerError as error:
        return WorkerAnswer(problem=str(error))
    return WorkerAnswer(
        errors={
            name: error
            for name, each in found.items()
            if (error := _error(each.status)) is not None
        }
    )


def _error(status: Status) -> str | None:
    """The last line of the first trace: what is wrong, without where in the code."""
    for each in (status.connector, *status.tasks):
        if each.state == _FAILED:
            lines = (each.trace or "").strip().splitlines()
            return lines[-1] if lines else "It has failed."
    return None


def status_lines(flows: Sequence[SeenFlow]) -> Iterator[str]:
    """A table of all partitions, then a line for each flow, and what is wrong."""
    rows = [
        _row(flow, each)
        for flow in flows
        for each in sorted(flow.status.partitions, key=lambda each: each.place)
    ]
    if rows:
        has_notes = any(row[-1] for row in rows)
        width = len(_COLUMNS) if has_notes else len(_COLUMNS) - 1
        yield from table(_COLUMNS[:width], [row[:width] for row in rows])
        yield ""
    for flow in flows:
        yield _summary(flow)
        for problem in flow.status.problems:
            yield f"  {problem}"
        if flow.worker is not None:
            if flow.worker.problem is not None:
                yield f"  {flow.worker.problem}"
            for name, error in flow.worker.errors.items():
                yield f"  {name} has failed: {error}"
    if not flows:
        yield "No flow is enabled."


def _row(flow: SeenFlow, one: PartitionStatus) -> tuple[str, ...]:
    seconds = one.seconds(flow.now_ms)
    return (
        flow.status.flow,
        one.place.topic,
        str(one.place.partition),
        _shown(one.end),
        _shown(one.copied),
        _shown(one.lag),
        "-" if seconds is None else f"{seconds:.1f}",
        one.note or "",
    )


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)


def _summary(flow: SeenFlow) -> str:
    partitions = flow.status.partitions
    topics = len({each.place.topic for each in partitions})
    seconds = "" if flow.seconds is None else f", {flow.seconds:.1f} s"
    amount = "unknown lag" if flow.lag is None else f"lag {flow.lag}{seconds}"
    return f"{flow.status.flow}: {amount}, topics {topics}, partitions {len(partitions)}"


def status_json(flows: Sequence[SeenFlow], now_ms: float) -> dict[str, object]:
    """The same for programs."""
    return {"time": int(now_ms), "flows": [_flow_json(each) for each in flows]}


def _flow_json(flow: SeenFlow) -> dict[str, object]:
    worker = flow.worker
    return {
        "flow": flow.status.flow,
        "lag": flow.lag,
        "seconds": _rounded(flow.seconds),
        "problems": list(flow.status.problems),
        "errors": None if worker is None or worker.problem else dict(worker.errors),
        "worker_problem": None if worker is None else worker.problem,
        "partitions": [
            {
                "topic": each.place.topic,
                "partition": each.place.partition,
                "remote_topic": each.remote_topic,
                "end": each.end,
                "copied": each.copied,
                "lag": each.lag,
                "seconds": _rounded(each.seconds(flow.now_ms)),
                "note": each.note,
            }
            for each in sorted(flow.status.partitions, key=lambda each: each.place)
        ],
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
