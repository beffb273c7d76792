"""A worker's herder: dispatches every request, whether the worker stands alone or is one of a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from headrace import __version__
from headrace.config.providers import Resolution
from headrace.connect.errors import RetriableError
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
    ServerInfo,
    TargetState,
    TaskInfo,
    WorkerHealth,
    WorkerInfo,
)
from headrace.herder.connectors import ConnectorRequests
from headrace.herder.coordination import Coordinate, HerderParts
from headrace.herder.errors import ElsewhereError, RequestError, ServerError
from headrace.herder.internal_requests import (
    digest,
    rejoin_request,
    relinquish_request,
    task_count_request,
    tasks_request,
)
from headrace.herder.offsets import OffsetRequests
from headrace.herder.protocol import Config
from headrace.herder.queries import ConnectorQueries
from headrace.herder.reconciler import Reconciler, TaskSet
from headrace.herder.reloads import LOOK_SECONDS, Reloads
from headrace.herder.request_queue import RequestQueue, Stages
from headrace.herder.request_signing import Requesters
from headrace.herder.requests import CreateRequest, OffsetChange, RestartRequest, UndoRequest
from headrace.herder.restarts import RestartRequests
from headrace.herder.services import KafkaReadiness, KafkaServices, LocalServices
from headrace.herder.standalone import Standalone
from headrace.herder.topics import TopicRequests
from headrace.offsets.connector_stores import NamedConnector
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.runs import NewRun, Run, RunWatcher, stop_all
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import StoredConnector, TaskCount

_HEALTH_SECONDS = 10.0
_LOOK_SECONDS = 0.2
_READY = "Worker has completed startup and is ready to handle requests."
_STARTING = "Worker is still starting up. {}"
_ARRIVING = "Requests are answered, and it is given connectors as soon as Spark has started."
_UNHEALTHY = (
    "Worker was unable to handle this request and may be unable to handle other requests. {}"
)


def _connector_run(spec: RunSpec, services: Services, watcher: RunWatcher) -> Run:
    return ConnectorRun(spec, services, watcher=watcher)


class WorkerHerder:
    """A :class:`~headrace.herder.protocol.Herder`. What it runs, and whether it may change the cluster, its coordination says.

    Connectors run after :meth:`ready`, which is called once the connectors of the command line have been
    requested. *opening* waits for Kafka and returns the services that need it; it is called on a thread of its own, again
    after a ``RetriableError`` if starts are retried, and its owner closes what it opened. Files that placeholders refer to are checked every
    *look_seconds*. The owner of a herder calls :meth:`start`, and :meth:`close` at the end.
    """

    def __init__(
        self,
        local: LocalServices,
        opening: Callable[[], KafkaServices],
        *,
        coordinate: Coordinate = Standalone,
        new_run: NewRun = _connector_run,
        health_seconds: float = _HEALTH_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._local = local
        self._health_seconds = health_seconds
        self._is_stopping = False
        self._has_stopped_runs = False
        self._stages = stages = Stages()
        self._kafka_readiness = KafkaReadiness()
        self._queue = RequestQueue(stages)
        self._queries = ConnectorQueries(local)
        self._reconciler = Reconciler(
            local, self._queue, new_run, store_tasks=self._have_tasks_stored
        )
        parts = HerderParts(
            local=local,
            opening=opening,
            kafka_readiness=self._kafka_readiness,
            queue=self._queue,
            stages=stages,
            reconciler=self._reconciler,
        )
        self._coordination = coordinate(parts)
        self._connectors = ConnectorRequests(parts, self._queries, self._coordination)
        self._restarts = RestartRequests(
            local,
            self._queue,
            self._queries,
            require_owner=self._coordination.require_owner,
            start_again=self._reconciler.restart,
        )
        self._topics = TopicRequests(local)
        self._fencing = threading.Lock()
        self._offsets = OffsetRequests(parts, self._queries, self._connectors, self._coordination)
        self._reloads = Reloads(
            begun=self._begun,
            resolved=local.validator.resolved,
            restart=self._reload,
            seconds=look_seconds,
        )

    # -- its own life -----------------------------------------------------------------------------------

    def start(self, *, only: Collection[str] | None = None) -> None:
        """Answer requests from now on, and run the stored connectors as soon as Kafka has been reached.

        With *only*, connectors of other names are left alone until a request concerns them.
        """
        self._queue.start()
        self._coordination.begin(only)
        if not self._local.once:
            self._reloads.start()

    def start_only(self, connectors: Sequence[StoredConnector]) -> None:
        """Start with *connectors* alone, whose configurations have been validated; returns once Kafka has been reached.

        Each then replaces the stored connector of its name. Other stored connectors are left alone. Raises what keeps
        connectors from running, such as ``ConnectError`` when Kafka is not reached in time.
        """
        self.start(only=())
        self._kafka_readiness.wait()
        self._connectors.put_validated(connectors)

    def ready(self) -> None:
        """Let connectors run, as soon as Kafka has been reached; called once by the owner."""
        self._coordination.ready()

    def give_up(self) -> None:
        """Fail, if Kafka is being tried again after the start's deadline; otherwise nothing happens. Any thread may call."""
        self._coordination.give_up()

    def ask_to_stop(self) -> None:
        """Make :meth:`wait_for_end` stop everything and return, within moments.

        Any thread may call it, and a signal handler, which may interrupt the waiting thread while that holds a lock.
        So it takes none.
        """
        self._is_stopping = True

    def wait_for_end(self) -> Mapping[str, Exception]:
        """Wait until no connector runs any more, each ended by itself, or by :meth:`ask_to_stop`.

        Returns the failures by connector. Connectors that do not end in time are left to their leases: they cannot write
        once their process is gone.
        """
        self._wait(self._reconciler.all_have_ended)
        return self._ended()

    def wait_for_failure(self) -> Mapping[str, Exception]:
        """As :meth:`wait_for_end`, but until one connector has failed that is not restarted: the others end with it."""
        self._wait(self._reconciler.one_is_lost)
        return self._ended()

    def _wait(self, event: threading.Event) -> None:
        while not self._is_stopping and not event.wait(_LOOK_SECONDS):
            pass

    def _ended(self) -> Mapping[str, Exception]:
        runs = self._queue.ask(None, self._reconciler.close)
        self._stop(runs)
        return self._queue.ask(None, self._reconciler.failures)

    def refuse_waiting(self) -> None:
        """Answer requests that wait for Kafka with an error. Called before REST is closed."""
        self._kafka_readiness.refuse(ServerError("Worker is shutting down"))

    def leave(self) -> None:
        """Leave the group, if this is a worker of one, after others have taken over what runs here. Called before REST is closed."""
        self._coordination.close()

    def leave_at_once(self) -> None:
        """Have :meth:`leave` not wait, from now on, until others take over what runs here; called by a signal handler, and takes no lock."""
        self._coordination.leave_at_once()

    def close(self) -> None:
        """End everything: requests first, then runs within their grace."""
        self._reloads.close()
        self._coordination.close()
        self._queue.close()
        self._stop(self._reconciler.runs())

    def _stop(self, runs: Sequence[Run]) -> None:
        """Give the runs their grace, once: one that has not ended within it is not waited for again."""
        if not self._has_stopped_runs:
            stop_all(runs, grace=self._local.grace)
            self._has_stopped_runs = True

    @property
    def failure(self) -> Exception | None:
        """Why connectors can never run, such as Kafka not reached in time; ``None`` while all is well."""
        return self._kafka_readiness.failure

    @property
    def delay(self) -> Exception | None:
        """Why Kafka was not reached in time, while it is tried again."""
        return self._kafka_readiness.delay

    @property
    def is_to_end(self) -> bool:
        """Whether the process is to end, as a request has asked for."""
        return self._coordination.is_to_end

    @property
    def is_open(self) -> bool:
        """Whether Kafka has been reached, and connectors run."""
        return self._coordination.is_open

    def failed(self) -> Sequence[str]:
        """The connectors that have failed and are not restarted, or do not read a part of their sources."""
        return list(self._reconciler.failures())

    def _begun(self) -> Mapping[str, Resolution]:
        return self._queue.ask(None, self._reconciler.begun)

    def _reload(self, name: str) -> None:
        # The outcome is not awaited; the status shows it.
        self.restart(RestartRequest(name=name, include_tasks=True))

    # -- the worker -------------------------------------------------------------------------------------

    def server(self) -> ServerInfo:
        """Who this worker is."""
        kafka = self._kafka_readiness.peek()
        return ServerInfo(
            version=__version__,
            commit="unknown",
            kafka_cluster_id=None if kafka is None else kafka.cluster_id,
        )

    def health(self) -> WorkerHealth:
        """Whether requests are answered, and whether connectors can run."""
        try:
            self._queue.submit(None, lambda: None).result(self._health_seconds)
        except TimeoutError:
            if self.is_open:
                return WorkerHealth(
                    status=Health.UNHEALTHY, message=_UNHEALTHY.format(self.stage() or "").strip()
                )
        problem = self._coordination.problem or self._problem_of_slots()
        if problem is not None:
            return WorkerHealth(status=Health.UNHEALTHY, message=_UNHEALTHY.format(problem))
        if self.is_open and self._coordination.is_arriving:
            return WorkerHealth(status=Health.STARTING, message=_STARTING.format(_ARRIVING))
        if self.is_open:
            return WorkerHealth(status=Health.HEALTHY, message=_READY)
        why = self.delay or self.stage() or ""
        return WorkerHealth(status=Health.STARTING, message=_STARTING.format(why).strip())

    def _problem_of_slots(self) -> str | None:
        kafka = self._kafka_readiness.peek()
        return None if kafka is None else kafka.services.channel.versions.problem

    def stage(self) -> str | None:
        """The worker's current or last operation."""
        return self._stages.sentence()

    def catch_up(self) -> None:
        """See all that other workers of the group have changed before this call."""
        self._coordination.catch_up()

    # -- connectors -------------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """The names of all connectors."""
        return self._queries.names()

    def create(self, request: CreateRequest) -> Created:
        """Validate and store a connector, with its offsets if it has any, and start it."""
        if request.dry_run:
            return self._offsets.try_creation(request)
        if request.initial_offsets is None:
            return self._connectors.create(request)
        return self._offsets.create(request, request.initial_offsets)

    def info(self, name: str) -> ConnectorInfo:
        """The connector as it was submitted."""
        return self._queries.info(name)

    def put_config(self, name: str, config: Config) -> Created:
        """Replace the configuration of a connector, or create it."""
        return self._connectors.put_config(name, config)

    def patch_config(self, name: str, changes: Config) -> Created:
        """Merge *changes* into the configuration."""
        return self._connectors.patch_config(name, changes)

    def delete(self, name: str) -> None:
        """Stop the connector and delete it."""
        self._connectors.delete(name)
        kafka = self._kafka_readiness.peek()
        if kafka is not None:
            kafka.services.offsets.keep_only(NamedConnector(name=name))

    def status(self, name: str) -> ConnectorStatus:
        """The states of the connector and its tasks."""
        return self._queries.status(name)

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """The connector's tasks with their configurations."""
        return self._queries.tasks(name)

    def pause(self, name: str) -> None:
        """Set the target state PAUSED."""
        self._connectors.want(name, TargetState.PAUSED)

    def resume(self, name: str) -> None:
        """Set the target state RUNNING."""
        self._connectors.want(name, TargetState.RUNNING)

    def stop(self, name: str) -> None:
        """Set the target state STOPPED."""
        self._connectors.want(name, TargetState.STOPPED)

    def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        """Restart the connector, or the parts that the flags select."""
        return self._restarts.restart(request)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._restarts.restart_task(name, task)

    # -- between workers of a group ---------------------------------------------------------------------

    @property
    def requesters(self) -> Requesters | None:
        """By what the group's workers believe each other who has asked."""
        return self._local.requesters

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """Raise unless another worker of the group sends *body*."""
        self._coordination.verify(body, signature, algorithm)

    def put_tasks(
        self, name: str, configs: Sequence[Mapping[str, str]], *, made_from: str | None
    ) -> None:
        """Store the tasks of a connector that another worker runs."""
        self._connectors.put_tasks(name, configs, made_from=made_from)

    def put_task_count(self, name: str, count: int | None) -> None:
        """Store how many tasks of a connector that another worker runs may write; without *count*, all that it has."""
        # Not on the herder's thread: runs that end wait for it, and what ends them may wait there.
        self._coordination.require_may_change()
        configs = self._local.configs
        if count is not None:
            # Also of a connector that was deleted, whose tasks are still to be fenced.
            configs.put_task_count(name, TaskCount(slots=count))
            return
        # One after the other: the second one would fence a task that the first one has let begin.
        with self._fencing:
            if self._coordination.fence_tasks(self._queries.stored(name)):
                configs.put_task_count(name, TaskCount(slots=len(configs.task_configs(name))))

    def await_quiet(self, name: str) -> None:
        """Return when nothing of the connector runs on this worker."""
        self._coordination.await_quiet(name)

    def have_task_count_stored(self, name: str, count: TaskCount) -> None:
        """Return when the worker that may has stored how many tasks of a connector may write; called on threads of runs and requests.

        Raises :class:`~headrace.connect.errors.RetriableError` when it is not stored.
        """
        try:
            try:
                self._coordination.require_may_change()
                self._local.configs.put_task_count(name, count)
            except ElsewhereError as elsewhere:
                self._coordination.send(elsewhere, task_count_request(name, count.slots))
        except RequestError as error:
            raise RetriableError(
                f"It is not stored how many tasks of connector {name} may write: {error}"
            ) from error

    def _have_tasks_stored(self, tasks: TaskSet) -> None:
        name, made_from = tasks.connector.name, digest(tasks.connector.config)
        if not self._coordination.has_tasks(name, tasks.configs):
            try:
                self.put_tasks(name, tasks.configs, made_from=made_from)
            except ElsewhereError as elsewhere:
                request = tasks_request(name, tasks.configs, made_from=made_from)
                self._coordination.send(elsewhere, request)
        self._coordination.require_tasks(name)

    # -- topics and offsets -----------------------------------------------------------------------------

    def topics(self, name: str) -> Sequence[str]:
        """The topics that the connector has written to; none for an unknown connector."""
        return self._topics.topics(name)

    def reset_topics(self, name: str) -> None:
        """Forget which topics the connector has written to."""
        self._topics.reset(name)

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """The committed offsets."""
        return self._offsets.offsets(name)

    def offset_lag(self, name: str) -> Sequence[PartitionLag]:
        """The committed offsets, with their lag."""
        return self._offsets.lag(name)

    def alter_offsets(
        self, name: str, changes: Sequence[OffsetChange], *, dry_run: bool = False
    ) -> str:
        """Change the offsets of a STOPPED connector."""
        return self._offsets.alter(name, changes, dry_run=dry_run)

    def reset_offsets(self, name: str, *, dry_run: bool = False) -> str:
        """Delete all offsets of a STOPPED connector."""
        return self._offsets.reset(name, dry_run=dry_run)

    def offset_history(self, name: str) -> Sequence[PastChange]:
        """The changes of its offsets, the newest first."""
        return self._offsets.history(name)

    def undo_offsets(self, request: UndoRequest) -> str:
        """Undo a change of the offsets of a STOPPED connector."""
        return self._offsets.undo(request)

    # -- plugins and validation -------------------------------------------------------------------------

    def plugins(self) -> Sequence[Plugin]:
        """All plugins that a configuration may name."""
        return self._local.validator.plugins()

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """The settings of a plugin."""
        return self._local.validator.plugin_settings(name, version)

    def validate(self, plugin: str, config: Config) -> ConfigInfos:
        """The validation of *config*."""
        tried = self._connectors.with_kept_passwords(config)
        return self._local.validator.validate(tried, plugin)

    # -- the group --------------------------------------------------------------------------------------

    def workers(self) -> Sequence[WorkerInfo]:
        """The workers of the group."""
        return self._coordination.workers()

    def known_workers(self, *, unreachable: str | None = None) -> Sequence[WorkerInfo]:
        """The workers of the group, as far as they are known without asking another one."""
        return self._coordination.known_workers(unreachable=unreachable)

    def relinquish(self, worker: str, *, stay: bool = False, signed: bool = False) -> None:
        """Have the worker hand its connectors over, and end unless it is to *stay*."""
        try:
            self._coordination.relinquish(worker, stay=stay)
        except ElsewhereError as elsewhere:
            if not signed:
                raise
            self._coordination.send(elsewhere, relinquish_request(worker, stay=stay))

    def share_level(self, logger: str, level: str) -> bool:
        """Have all workers of the group set the level of a logger, if this is a worker of one."""
        share_level = self._local.share_level
        if share_level is not None:
            self._coordination.require_topics()
            share_level(logger, level)
        return share_level is not None

    def rejoin(self, worker: str, *, signed: bool = False) -> None:
        """Have the worker take connectors again."""
        try:
            self._coordination.rejoin(worker)
        except ElsewhereError as elsewhere:
            if not signed:
                raise
            self._coordination.send(elsewhere, rejoin_request(worker))
