"""A herder for tests of the REST interface: a dictionary of connectors, and the calls that it got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.connect.partition import SourcePartition
from headrace.connect.setting import Setting
from headrace.herder.answers import (
    ConfigInfos,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Created,
    Health,
    PartitionLag,
    PastChange,
    Plugin,
    PluginKind,
    ServerInfo,
    State,
    StateInfo,
    TaskId,
    TaskInfo,
    WorkerHealth,
    WorkerInfo,
    WorkerState,
)
from headrace.herder.errors import AlreadyExistsError, NotFoundError
from headrace.herder.protocol import Config
from headrace.herder.request_signing import RequestSigning
from headrace.herder.requests import (
    CreateRequest,
    OffsetChange,
    RestartRequest,
    UndoRequest,
    requester,
)
from headrace.storage.protocols import SessionKey

ALTERED = "The offsets for this connector have been altered successfully"
HEALTHY = WorkerHealth(status=Health.HEALTHY, message="Fine.")
WORKER = "10.0.0.5:8083"
SESSION_KEY = SessionKey(key=b"canary", algorithm="HmacSHA256", created_ms=1)
SIGNING = RequestSigning(
    algorithm="HmacSHA256",
    permitted=("HmacSHA256", "HmacSHA1"),
    key_algorithm="HmacSHA256",
    key_bits=None,
    key_ttl_ms=3_600_000,
)


def worker(id_: str = WORKER, **more: Any) -> WorkerInfo:  # noqa: ANN401 (as the dataclass has them)
    """A worker as a herder tells of it."""
    given = {
        "url": f"http://{id_}/",
        "version": "1.2",
        "slots": 4,
        "is_leader": False,
        "state": WorkerState.ACTIVE,
        "connectors": [],
    }
    return WorkerInfo(id=id_, **{**given, **more})


@dataclass
class FakeHerder:
    """Answers at once; *trouble*, if set, is called first by every method and may raise or wait."""

    configs: dict[str, dict[str, str | None]] = field(default_factory=dict)
    calls: list[object] = field(default_factory=list)
    trouble: Callable[[], None] = lambda: None
    found_health: WorkerHealth = HEALTHY
    found_stage: str | None = None
    written: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known_offsets: Sequence[ConnectorOffset] = ()
    past: Sequence[PastChange] = ()
    lags: Sequence[PartitionLag] = ()
    known_plugins: Sequence[Plugin] = (
        Plugin(class_name="a.Files", kind=PluginKind.SOURCE, version="1.0"),
        Plugin(class_name="a.Json", kind=PluginKind.CONVERTER),
    )
    settings: Sequence[Setting] = ()
    infos: ConfigInfos | None = None
    trace: str | None = None
    asked_by: list[str | None] = field(default_factory=list)
    is_in_group: bool = False
    session_key: SessionKey | None = SESSION_KEY
    signing: RequestSigning = SIGNING
    caught_up: int = 0
    group: dict[str, WorkerInfo] = field(default_factory=dict[str, WorkerInfo])
    shares_levels: bool = False

    def catch_up(self) -> None:
        """Note it."""
        self.caught_up += 1

    def server(self) -> ServerInfo:
        """See ``Herder``."""
        self.trouble()
        return ServerInfo(version="1.2", commit="abc", kafka_cluster_id=None)

    def health(self) -> WorkerHealth:
        """See ``Herder``."""
        return self.found_health

    def stage(self) -> str | None:
        """See ``Herder``."""
        return self.found_stage

    def connectors(self) -> Sequence[str]:
        """See ``Herder``."""
        self.trouble()
        return list(self.configs)

    def create(self, request: CreateRequest) -> Created:
        """See ``Herder``."""
        self._note("create", request)
        if request.name in self.configs:
            raise AlreadyExistsError(request.name)
        if request.dry_run:
            info = ConnectorInfo(name=request.name, config=request.config, tasks=[], type="source")
            return Created(info=info)
        self.configs[request.name] = dict(request.config)
        message = None if request.initial_offsets is None else "Set."
        return Created(info=self.info(request.name), offsets_message=message)

    def info(self, name: str) -> ConnectorInfo:
        """See ``Herder``."""
        self._known(name)
        return ConnectorInfo(
            name=name,
            config=self.configs[name],
            tasks=[TaskId(connector=name, task=0)],
            type="source",
        )

    def put_config(self, name: str, config: Config) -> Created:
        """See ``Herder``."""
        self._note("put_config", name)
        is_new = name not in self.configs
        self.configs[name] = dict(config)
        return Created(info=self.info(name), is_new=is_new)

    def patch_config(self, name: str, changes: Config) -> Created:
        """See ``Herder``."""
        self._note("patch_config", dict(changes))
        self._known(name)
        return Created(info=self.info(name), is_new=False)

    def delete(self, name: str) -> None:
        """See ``Herder``."""
        self._known(name)
        del self.configs[name]

    def status(self, name: str) -> ConnectorStatus:
        """See ``Herder``."""
        if name not in self.configs:
            raise NotFoundError(f"No status found for connector {name}")
        connector = StateInfo(state=State.RUNNING, worker_id=WORKER, version="1.0")
        task = StateInfo(task=0, state=State.FAILED, worker_id=WORKER, trace=self.trace)
        return ConnectorStatus(name=name, connector=connector, tasks=[task], type="source")

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """See ``Herder``."""
        self._known(name)
        return [TaskInfo(id=TaskId(connector=name, task=0), config={"file": "a.txt"})]

    def pause(self, name: str) -> None:
        """See ``Herder``."""
        self._note("pause", name)
        self._known(name)

    def resume(self, name: str) -> None:
        """See ``Herder``."""
        self._note("resume", name)
        self._known(name)

    def stop(self, name: str) -> None:
        """See ``Herder``."""
        self._note("stop", name)
        self._known(name)

    def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        """See ``Herder``."""
        self._note("restart", request)
        self._known(request.name)
        flagged = request.include_tasks or request.only_failed
        return self.status(request.name) if flagged else None

    def restart_task(self, name: str, task: int) -> None:
        """See ``Herder``."""
        self._note("restart_task", (name, task))
        self._known(name)

    @property
    def requesters(self) -> FakeHerder | None:
        """See ``Herder``."""
        return self if self.is_in_group else None

    def told(self, who: str, request: bytes) -> str | None:
        """See ``Requesters``."""
        return self.signing.told_requester(who, request, self.session_key)

    def believed(self, header: str, request: bytes) -> str | None:
        """See ``Requesters``."""
        return self.signing.believed_requester(header, request, self.session_key)

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """See ``Herder``."""
        self.signing.verify(body, signature, algorithm, self.session_key)

    def put_tasks(
        self, name: str, configs: Sequence[Mapping[str, str]], *, made_from: str | None
    ) -> None:
        """See ``Herder``."""
        self._note("put_tasks", (name, configs, made_from))
        self._known(name)

    def put_task_count(self, name: str, count: int | None) -> None:
        """See ``Herder``."""
        self._note("put_task_count", (name, count))
        self._known(name)

    def await_quiet(self, name: str) -> None:
        """See ``Herder``."""
        self._note("await_quiet", name)

    def topics(self, name: str) -> Sequence[str]:
        """See ``Herder``."""
        return self.written.get(name, ())

    def reset_topics(self, name: str) -> None:
        """See ``Herder``."""
        self._note("reset_topics", name)

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """See ``Herder``."""
        self._known(name)
        return self.known_offsets

    def alter_offsets(
        self, name: str, changes: Sequence[OffsetChange], *, dry_run: bool = False
    ) -> str:
        """See ``Herder``."""
        self._note("try_alter_offsets" if dry_run else "alter_offsets", list(changes))
        self.asked_by.append(requester())
        self._known(name)
        return ALTERED

    def reset_offsets(self, name: str, *, dry_run: bool = False) -> str:
        """See ``Herder``."""
        self._note("try_reset_offsets" if dry_run else "reset_offsets", name)
        self._known(name)
        return ALTERED

    def offset_lag(self, name: str) -> Sequence[PartitionLag]:
        """See ``Herder``."""
        return self.lags

    def offset_history(self, name: str) -> Sequence[PastChange]:
        """See ``Herder``."""
        return self.past

    def undo_offsets(self, request: UndoRequest) -> str:
        """See ``Herder``."""
        self._note("undo_offsets", request)
        return ALTERED

    def plugins(self) -> Sequence[Plugin]:
        """See ``Herder``."""
        return self.known_plugins

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """See ``Herder``."""
        self._note("plugin_settings", (name, version))
        return self.settings

    def validate(self, plugin: str, config: Config) -> ConfigInfos:
        """See ``Herder``."""
        self._note("validate", (plugin, dict(config)))
        return self.infos or ConfigInfos(name=plugin, error_count=0, groups=[], configs=[])

    def workers(self) -> Sequence[WorkerInfo]:
        """See ``Herder``."""
        self.trouble()
        return list(self.group.values())

    def known_workers(self, *, unreachable: str | None = None) -> Sequence[WorkerInfo]:
        """See ``Herder``."""
        state = WorkerState.UNREACHABLE
        return [
            replace(each, state=state) if each.url == unreachable else each
            for each in self.group.values()
        ]

    def relinquish(self, worker: str, *, stay: bool = False, signed: bool = False) -> None:
        """See ``Herder``."""
        if signed:
            self.calls.append("signed")
        self._note("relinquish", (worker, stay))
        self._become(worker, WorkerState.LEAVING)

    def share_level(self, logger: str, level: str) -> bool:
        """See ``Herder``."""
        self._note("share_level", (logger, level))
        return self.shares_levels

    def rejoin(self, worker: str, *, signed: bool = False) -> None:
        """See ``Herder``."""
        if signed:
            self.calls.append("signed")
        self._note("rejoin", worker)
        self._become(worker, WorkerState.ACTIVE)

    def _become(self, worker: str, state: WorkerState) -> None:
        if worker not in self.group:
            raise NotFoundError(f"Unknown worker {worker}.")
        self.group[worker] = replace(self.group[worker], state=state)

    def _note(self, what: str, of: object) -> None:
        self.trouble()
        self.calls.append((what, of))

    def _known(self, name: str) -> None:
        self.trouble()
        if name not in self.configs:
            raise NotFoundError(f"Connector {name} not found")


def offset(partition: Mapping[str, str], position: float) -> ConnectorOffset:
    """An offset as a herder returns it."""
    return ConnectorOffset(partition=SourcePartition(partition), offset={"position": position})
