"""What a MirrorMaker 2 file runs: of each flow a worker on its target, and the connectors that are enabled there."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.config.config_files import read_worker_file, repeated_keys
from headrace.config.providers import resolved_in
from headrace.config.spark_cores import machine_cores
from headrace.config.worker_config import ANYWHERE, ROLES, WorkerConfig, unsupported_keys
from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.mirror.client_settings import SERVERS
from headrace.mirror.dedicated import (
    BYTES_CONVERTER,
    HEARTBEAT_CONNECTOR,
    REST_PREFIXES,
    SOURCE_CONNECTOR,
    DedicatedConfig,
    Flow,
    dedicated_config,
)
from headrace.plugins import Plugins, ValidatedConnector, checked_worker
from headrace.plugins.validation import checked_connector
from headrace.rest.config import Listener, RestConfig, rest_problems
from headrace.rest.request import in_url

_log = logging.getLogger(__name__)

LISTENERS: Final = "listeners"
_SLOTS: Final = "headrace.slots"
_STATE_FILE: Final = "state.file"
_EXACTLY_ONCE: Final = "exactly.once.source.support"
_MASKED: Final = "rest.mask.passwords"
_INTERNAL_REST: Final = "dedicated.mode.enable.internal.rest"
# All flows have one Spark session, and one process.
_FOR_ALL: Final = (_SLOTS, "spark.", "plugin.", _STATE_FILE)
_SPARKS: Final = ("spark.master", "spark.remote")
_FEWEST_SLOTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFile:
    """A file of flows, as it was read; *props* may hold secrets."""

    path: Path
    props: Mapping[str, str] = field(repr=False)
    config: DedicatedConfig

    @classmethod
    def read(cls, path: Path) -> MirrorFile:
        """The file at *path*, JSON or properties.

        Raises :class:`~headrace.connect.errors.ConfigError` with all that is wrong between its keys, and then also with what
        is wrong with their values.
        """
        props = read_worker_file(path)

        def of_values(config: DedicatedConfig) -> Sequence[Problem]:
            try:
                flow_workers(cls(path=path, props=props, config=config), config.flows)
            except ConfigError as error:
                return error.problems
            return ()

        config = dedicated_config(
            props, repeated=repeated_keys(path), where=str(path), further=of_values
        )
        return cls(path=path, props=props, config=config)

    def towards(self, targets: Collection[str]) -> Sequence[Flow]:
        """The flows to one of the *targets*; all without any."""
        try:
            return self.config.towards(targets)
        except ConfigError as error:
            raise ConfigError(error.problems, where=str(self.path)) from error

    @property
    def warnings(self) -> Iterator[str]:
        """Sentences about keys that have no effect."""
        yield from self.config.warnings
        if any(key.startswith(REST_PREFIXES) for key in self.config.process):
            flow = self.config.flows[0].name
            yield (
                f"{LISTENERS} and the other keys of REST have an effect for one flow only, as in {flow}.{LISTENERS}: without it "
                "a flow does not answer requests."
            )
        if self.props.get(_INTERNAL_REST, "").strip().lower() == "true":
            yield (
                f"{_INTERNAL_REST} has no effect: one process runs a flow alone, and a second one that is started with the "
                "same file takes it over."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowWorker:
    """One flow, checked and ready to be started; *answers* says that it has listeners for requests."""

    flow: Flow
    config: WorkerConfig
    connectors: Sequence[ValidatedConnector]
    answers: bool

    @property
    def name(self) -> str:
        """The flow's name: ``A->B``."""
        return self.flow.name

    @property
    def source(self) -> ValidatedConnector | None:
        """The connector that copies records, if the flow has it."""
        return next((each for each in self.connectors if each.name == SOURCE_CONNECTOR), None)

    @property
    def url(self) -> str | None:
        """Where its worker answers while it runs: its first listener, by this machine's address if that is on all interfaces.

        ``None`` without listeners, and if the port is any free one.
        """
        if not self.answers:
            return None
        listener = Listener.parsed(RestConfig.parse(self.config.originals).listeners[0])
        is_anywhere = not listener.host or listener.host in ANYWHERE
        host = "127.0.0.1" if is_anywhere else listener.host
        return f"{listener.protocol}://{in_url(host)}:{listener.port}" if listener.port else None

    @property
    def phases(self) -> Sequence[Sequence[ValidatedConnector]]:
        """The connectors in the order in which they run to their end: records first, then what is said of them."""
        first = [] if self.source is None else [self.source]
        rest = [each for each in self.connectors if each is not self.source]
        return [each for each in (first, rest) if each]


def flow_workers(
    file: MirrorFile, flows: Sequence[Flow], *, once: bool = False
) -> Sequence[FlowWorker]:
    """The workers of *flows*, with warnings logged; without those that have nothing to do.

    With *once*, heartbeats are left out: they have no end. Raises :class:`~headrace.connect.errors.ConfigError` with the
    problems of all of them, by the names that keys have in the file. Asks no broker.
    """
    shared = shared_props(file.config.process, tasks_of(flows, once=once))
    found = list[FlowWorker]()
    problems = dict[Problem, None]()
    for flow in flows:
        try:
            worker = _flow_worker(file, flow, shared, once=once)
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
        else:
            found += [worker] if worker.connectors else []
    if problems:
        raise ConfigError(list(problems), where=str(file.path))
    return found


def tasks_of(flows: Sequence[Flow], *, once: bool = False) -> int:
    """How many tasks the connectors of *flows* may have in all; those that copy at most as many as the machine has cores.

    Checkpoints and heartbeats are written by one task each, whatever ``tasks.max`` is.
    """
    return sum(
        _tasks(given) if name == SOURCE_CONNECTOR else 1
        for flow in flows
        for name, given in _active(flow, once=once)
    )


def _tasks(given: Mapping[str, str]) -> int:
    text = given.get("tasks.max", "1").strip()
    # What is no number is reported with its connector.
    return min(int(text), machine_cores()) if text.isascii() and text.isdecimal() else 1


def shared_props(process: Mapping[str, str], tasks: int) -> dict[str, str]:
    """The settings of the file that are those of every worker. Pure.

    By default there are as many slots as *tasks*, so that none waits for another's, and at least two.
    """
    shared = {key: value for key, value in process.items() if not key.startswith(REST_PREFIXES)}
    if not any(key in shared for key in (*_SPARKS, _SLOTS)):
        shared[_SLOTS] = str(max(_FEWEST_SLOTS, tasks))
    return shared


def worker_props(flow: Flow, shared: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """The configuration of the worker of *flow*, and the keys that MirrorMaker takes and that are left out. Pure."""
    given = {
        key: value for key, value in flow.standalone_worker.items() if not key.startswith(_FOR_ALL)
    }
    # The connectors have the logins of both clusters from the file, where no one means to show them.
    props = {_MASKED: "true", **shared, **given}
    left_out = unsupported_keys(props)
    if props.get(_EXACTLY_ONCE, "").strip().lower() == "preparing":
        left_out |= {_EXACTLY_ONCE}
    return {key: value for key, value in props.items() if key not in left_out}, left_out


def _misplaced(flow: Flow) -> Iterator[Problem]:
    """The keys that cannot be one flow's."""
    for key in flow.standalone_worker:
        if key == _STATE_FILE:
            told = "Each flow has a state file of its own. Give the folder of all of them with --state."
            yield key, told
        elif key.startswith(_FOR_ALL):
            told = f"All flows of the file have it together: give {key} without a cluster's alias."
            yield key, told


def _flow_worker(
    file: MirrorFile, flow: Flow, shared: Mapping[str, str], *, once: bool
) -> FlowWorker:
    problems = list[Problem]()
    props, left_out = worker_props(flow, shared)
    answers = LISTENERS in props
    try:
        config = checked_worker(
            props,
            where=flow.name,
            folder=file.path.absolute().parent,
            also=rest_problems if answers else None,
        )
    except ConfigError as error:
        problems += error.problems
        config = _as_far_as_right(props, error)
    problems = [
        (flow.key_in_file(key, file.props), told) for key, told in (*_misplaced(flow), *problems)
    ]
    if left_out:
        named = ", ".join(sorted(flow.key_in_file(key, file.props) for key in left_out))
        _log.warning("%s: left out, as there is no distributed worker here: %s", flow.name, named)
    connectors = list[ValidatedConnector]()
    for _, given in _active(flow, once=once):
        try:
            with _named_as_in(file, flow):
                connectors.append(_connector(given, config))
        except ConfigError as error:
            known = dict(problems)
            problems += (each for each in error.problems if each[0] not in known)
    if problems:
        raise ConfigError(problems)
    for made in connectors:
        for warning in made.warnings:
            _log.warning("%s, %s: %s", flow.name, made.name, warning)
    return FlowWorker(flow=flow, config=config, connectors=connectors, answers=answers)


def _as_far_as_right(props: Mapping[str, str], error: ConfigError) -> WorkerConfig:
    """What is left of the worker's *props* without the wrong ones, so that its connectors can be checked, too."""
    wrong = {key for key, _ in error.problems}
    usable = {
        key: value
        for key, value in props.items()
        # Clients' own servers would be compared with the worker's, which may be what is wrong.
        if not (key in wrong or key.endswith(f".{SERVERS}"))
    }
    converters = {f"{role}.converter": BYTES_CONVERTER for role in ROLES}
    return WorkerConfig.parse({**converters, **resolved_in(usable, usable).props()})


@contextmanager
def _named_as_in(file: MirrorFile, flow: Flow) -> Generator[None]:
    """In the block, problems of the configurations of *flow* get the names that their keys have in the file."""
    try:
        yield
    except ConfigError as error:
        named = [(flow.key_in_file(key, file.props), told) for key, told in error.problems]
        raise ConfigError(named) from error


def _active(flow: Flow, *, once: bool) -> Iterator[tuple[str, Mapping[str, str]]]:
    for name, given in flow.active_connectors.items():
        if not (once and name == HEARTBEAT_CONNECTOR):
            yield name, given


def _connector(given: Mapping[str, str], worker: WorkerConfig) -> ValidatedConnector:
    return checked_connector(resolved_in(worker.originals, given), worker, Plugins(worker))
