"""Requests that change connectors and their target states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from headrace.herder.answers import ConfigInfos, Created, TargetState
from headrace.herder.config_masking import Passwords
from headrace.herder.coordination import Coordination, HerderParts
from headrace.herder.errors import AlreadyExistsError, BadRequestError, ConflictError, refusal
from headrace.herder.internal_requests import digest
from headrace.herder.protocol import Config
from headrace.herder.queries import ConnectorQueries
from headrace.herder.requests import CreateRequest, named
from headrace.herder.statuses import HerderStatuses
from headrace.storage.protocols import StoredConnector

Answer = TypeVar("Answer")

UNKNOWN: Final = "Unknown connector {}"
_OF_STOPPED: Final = "Cannot submit non-empty set of task configs for stopped connector {}"
_OF_EARLIER: Final = (
    "The tasks of connector {} were made from a configuration that it does not have any more."
)


def patched(config: Config, changes: Config) -> dict[str, str | None]:
    """*config* with *changes* merged into it; ``None`` removes a key (KIP-477)."""
    merged = {**config, **changes}
    return {key: value for key, value in merged.items() if changes.get(key, "") is not None}


def _refuse_invalid(infos: ConfigInfos) -> None:
    """Raise ``BadRequestError`` with all errors, in Kafka Connect's form, if there are any."""
    problem = refusal(infos)
    if problem is not None:
        raise problem


class ConnectorRequests:
    """Validates in the caller's thread; stores and acts in the herder's. Any thread may call."""

    def __init__(
        self,
        parts: HerderParts,
        queries: ConnectorQueries,
        coordination: Coordination,
    ) -> None:
        self._local = local = parts.local
        self._queue = parts.queue
        self._reconciler = parts.reconciler
        self._queries = queries
        self._coordination = coordination
        self._statuses = HerderStatuses(local)
        self._passwords = Passwords(local.validator, are_masked=local.masks_passwords)

    def checked(
        self, request: CreateRequest, before: StoredConnector | None = None
    ) -> StoredConnector:
        """What *request* would store in place of *before*, whose passwords it may keep.

        Raises ``BadRequestError`` with all problems.
        """
        stored = None if before is None else before.config
        config = self._passwords.kept(named(request.name, request.config), stored)
        _refuse_invalid(self._local.validator.validate(config))
        return StoredConnector(
            name=request.name, config=config, target_state=request.initial_state.value
        )

    def create(self, request: CreateRequest) -> Created:
        """Store a new connector without offsets."""
        stored = self.checked(request)

        def act() -> Created:
            self.refuse_existing(stored.name)
            return self._store(stored)

        return self._ask(
            stored.name, f"writing a config for connector {stored.name} to {self._local.place}", act
        )

    def refuse_existing(self, name: str) -> None:
        """Raise ``AlreadyExistsError`` when there is a connector of that name."""
        if self._local.configs.connector(name) is not None:
            raise AlreadyExistsError(name)

    def put_config(self, name: str, config: Config) -> Created:
        """Replace the configuration, or create the connector."""
        while True:
            known = self._local.configs.connector(name)
            stored = self.checked(CreateRequest(name=name, config=config), known)
            keeps = known if stored.config != named(name, config) else None
            created = self._ask(
                name,
                f"writing a config for connector {name} to {self._local.place}",
                partial(self._put, stored, keeps),
            )
            if created is not None:
                return created

    def put_validated(self, connectors: Sequence[StoredConnector]) -> None:
        """Store and run *connectors*, whose configurations have been validated, in place of any of their names."""

        def act() -> None:
            with self._local.together():
                for each in connectors:
                    self._local.configs.put_connector(each)
                    self.run_stored(each)

        self._queue.ask(f"writing the configs of connectors to {self._local.place}", act)

    def patch_config(self, name: str, changes: Config) -> Created:
        """Merge *changes* into the configuration, whatever others do to it meanwhile."""
        return self._changed(name, lambda before: patched(before, changes))

    def with_kept_passwords(self, config: Config) -> dict[str, str | None]:
        """*config* with the stored connector's passwords where it has ``[hidden]``; for validation only."""
        stored = self._local.configs.connector(config.get("name") or "")
        return self._passwords.tried(config, None if stored is None else stored.config)

    def _changed(self, name: str, changed: Callable[[Config], Config]) -> Created:
        self._coordination.require_may_change()
        while True:
            before = self._queries.stored(name)
            config = changed(before.config)
            if "name" not in config:
                # A name that a patch removes is an error; it is not taken from the URL.
                _refuse_invalid(self._local.validator.validate(config))
            request = CreateRequest(name=name, config=config)
            after = self.checked(request, before)
            created = self._ask(
                name,
                f"writing a config for connector {name} to {self._local.place}",
                self._unless_changed(before, after),
            )
            if created is not None:
                return created

    def delete(self, name: str) -> None:
        """Delete the connector; returns when nothing of it runs.

        Raises ``ServerError`` when that takes too long; the connector is deleted nevertheless.
        """

        def act() -> Future[None]:
            self._queries.stored(name)
            self._local.configs.delete_connector(name)
            ended = self._reconciler.quiet(name)
            self._coordination.deleted(name)
            self._statuses.forget(name)
            return ended

        ended = self._ask(name, f"deleting connector {name}", act)
        self._coordination.await_end(name, ended, "It is deleted")

    def want(self, name: str, target: TargetState) -> None:
        """Pause, resume or stop."""

        def act() -> None:
            before = self._queries.stored(name, unknown=UNKNOWN)
            stored = replace(before, target_state=target.value)
            if target is TargetState.STOPPED:
                self._local.configs.put_task_configs(name, ())
            self._local.configs.put_target_state(name, target.value)
            self._coordination.stored(stored, again=False)

        self._ask(name, f"writing the target state of connector {name} to {self._local.place}", act)

    def put_tasks(
        self, name: str, configs: Sequence[Mapping[str, str]], *, made_from: str | None
    ) -> None:
        """Store the tasks of a connector, which its run has found, if this worker may.

        Raises ``ConflictError`` when they were not *made_from* its present configuration, whose digest that is.
        """

        def act() -> None:
            stored = self._queries.stored(name)
            if configs and stored.target_state == TargetState.STOPPED:
                raise BadRequestError(_OF_STOPPED.format(name))
            if made_from not in (None, digest(stored.config)):
                raise ConflictError(_OF_EARLIER.format(name))
            self._local.configs.put_task_configs(name, configs)

        self._ask(None, None, act)

    def run_stored(self, stored: StoredConnector) -> None:
        """Start a connector that has just been stored, where it is to run; called on the herder's thread."""
        self._coordination.stored(stored, again=True)

    def _store(self, stored: StoredConnector) -> Created:
        self._local.configs.put_connector(stored)
        created = Created(info=self._queries.shown(stored))
        self.run_stored(stored)
        return created

    def _put(self, stored: StoredConnector, keeps: StoredConnector | None) -> Created | None:
        """Store it; returns ``None`` when *stored* keeps passwords of a configuration that was replaced meanwhile."""
        before = self._local.configs.connector(stored.name)
        if keeps is not None and (before is None or before.config != keeps.config):
            return None
        if before is None:
            return self._store(stored)
        return self._replace(replace(stored, target_state=before.target_state))

    def _replace(self, stored: StoredConnector) -> Created:
        return replace(self._store(stored), is_new=False)

    def _ask(self, name: str | None, stage: str | None, act: Callable[[], Answer]) -> Answer:
        def led() -> Answer:
            self._coordination.require_may_change()
            return act()

        return self._queue.ask(stage, led, connector=name)

    def _unless_changed(
        self, before: StoredConnector, after: StoredConnector
    ) -> Callable[[], Created | None]:
        def act() -> Created | None:
            now = self._queries.stored(before.name)
            if now.config != before.config:
                return None
            return self._replace(replace(now, config=after.config))

        return act
