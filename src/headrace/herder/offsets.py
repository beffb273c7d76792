"""Requests about offsets: reading them, and changing those of a connector that is stopped."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext

from headrace.config.client_settings import OFFSETS_TOPIC_KEY
from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.connect.errors import ConfigError
from headrace.herder.answers import ConnectorOffset, Created, PartitionLag, PastChange, TargetState
from headrace.herder.connectors import ConnectorRequests
from headrace.herder.coordination import Coordination, HerderParts
from headrace.herder.errors import BadRequestError
from headrace.herder.queries import ConnectorQueries
from headrace.herder.requests import (
    NOTHING_GIVEN,
    CreateRequest,
    OffsetChange,
    UndoRequest,
    requester,
)
from headrace.offsets.administration import OffsetChanges, partition_lags
from headrace.offsets.alteration import CreationStep, creation_step
from headrace.offsets.connector_stores import NamedConnector, OffsetsOwner
from headrace.offsets.history import past_change
from headrace.runtime.services import RunSpec
from headrace.storage.protocols import StoredConnector

_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
    "the specified connector by issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)


class OffsetRequests:
    """Works in the caller's thread, and holds the connector meanwhile. Any thread may call."""

    def __init__(
        self,
        parts: HerderParts,
        queries: ConnectorQueries,
        connectors: ConnectorRequests,
        coordination: Coordination,
    ) -> None:
        self._local = parts.local
        self._kafka_readiness = parts.kafka_readiness
        self._queue = parts.queue
        self._stages = parts.stages
        self._reconciler = parts.reconciler
        self._coordination = coordination
        self._queries = queries
        self._connectors = connectors

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """The committed offsets."""
        owner = self._offsets_owner(self._queries.stored(name))
        changes = self._kafka_readiness.kafka().changes
        with self._stages.during(f"reading the offsets of connector {name}"):
            return changes.read(owner)

    def lag(self, name: str) -> Sequence[PartitionLag]:
        """The committed offsets, with their lag."""
        spec = self._run_spec(self._queries.stored(name))
        return partition_lags(spec, self.offsets(name))

    def history(self, name: str) -> Sequence[PastChange]:
        """The changes of its offsets; ``NotFoundError`` for a name that never had a connector."""
        entries = self._kafka_readiness.kafka().changes.history(name)
        if not entries:
            self._queries.stored(name)
        return [past_change(each) for each in entries]

    def alter(self, name: str, changes: Sequence[OffsetChange], *, dry_run: bool) -> str:
        """Change offsets; returns the sentence of success."""
        if not changes:
            raise BadRequestError(NOTHING_GIVEN)
        return self._changed(
            name,
            f"altering the offsets of connector {name}",
            lambda to, spec: to.alter(spec, changes, who=requester(), dry_run=dry_run),
            dry_run=dry_run,
        )

    def reset(self, name: str, *, dry_run: bool) -> str:
        """Delete all offsets; returns the sentence of success."""
        return self._changed(
            name,
            f"resetting the offsets of connector {name}",
            lambda to, spec: to.reset(spec, who=requester(), dry_run=dry_run),
            dry_run=dry_run,
        )

    def undo(self, request: UndoRequest) -> str:
        """Undo a change; returns the sentence of success."""
        return self._changed(
            request.name,
            f"undoing change {request.change} of the offsets of connector {request.name}",
            lambda to, spec: to.undo(
                spec,
                request.change,
                who=requester(),
                force=request.force,
                dry_run=request.dry_run,
            ),
            dry_run=request.dry_run,
        )

    def try_creation(self, request: CreateRequest) -> Created:
        """The answer that a creation would get; nothing is created, and the name is not held."""
        initial_offsets = request.initial_offsets
        step = (
            nullcontext()
            if initial_offsets is None
            else creation_step(request.name, CreationStep.VALIDATING_CONFIG)
        )
        with step:
            stored = self._connectors.checked(request)
            self._connectors.refuse_existing(stored.name)
            spec = self._run_spec(stored)
        message = None
        if initial_offsets is not None:
            changes = self._kafka_readiness.kafka().changes
            with self._stages.during(f"trying the initial offsets of connector {stored.name}"):
                message = changes.create(
                    spec, stored, initial_offsets, who=requester(), dry_run=True
                )
        return Created(info=self._queries.shown(stored), offsets_message=message)

    def create(self, request: CreateRequest, initial_offsets: Sequence[OffsetChange]) -> Created:
        """Create a connector with offsets: its name is held from the first step to the last (KIP-995)."""
        with creation_step(request.name, CreationStep.VALIDATING_CONFIG):
            stored = self._connectors.checked(request)
            self._connectors.refuse_existing(stored.name)
        changes = self._kafka_readiness.kafka().changes
        with self._held(stored.name):
            with creation_step(request.name, CreationStep.VALIDATING_CONFIG):
                self._connectors.refuse_existing(stored.name)
                spec = self._run_spec(stored)
                self._await_end(stored.name, "Nothing was changed")
            with self._stages.during(f"setting the initial offsets of connector {stored.name}"):
                message = changes.create(spec, stored, initial_offsets, who=requester())
            # Before the hold ends, and so before other requests that wait for the name.
            info = self._queries.shown(stored)
            self._queue.post(lambda: self._connectors.run_stored(stored))
        return Created(info=info, offsets_message=message)

    def _changed(
        self, name: str, stage: str, act: Callable[[OffsetChanges, RunSpec], str], *, dry_run: bool
    ) -> str:
        if dry_run:
            return self._tried(name, stage, act)
        self._coordination.require_may_change()
        self._stopped(name)
        changes = self._kafka_readiness.kafka().changes
        with self._held(name):
            stored = self._stopped(name)
            self._await_end(name, "The offsets were not changed")
            with self._stages.during(stage):
                return act(changes, self._run_spec(stored))

    def _tried(self, name: str, stage: str, act: Callable[[OffsetChanges, RunSpec], str]) -> str:
        self._queries.stored(name)
        changes = self._kafka_readiness.kafka().changes
        with self._stages.during(f"trying: {stage}"):
            return act(changes, self._run_spec(self._queries.stored(name)))

    def _stopped(self, name: str) -> StoredConnector:
        stored = self._queries.stored(name)
        if stored.target_state != TargetState.STOPPED:
            raise BadRequestError(_NOT_STOPPED.format(name))
        return stored

    def _await_end(self, name: str, outcome: str) -> None:
        stage = f"waiting for the tasks of connector {name} to end"
        ended = self._queue.ask(stage, lambda: self._reconciler.quiet(name))
        self._coordination.await_end(name, ended, outcome)

    def _offsets_owner(self, stored: StoredConnector) -> OffsetsOwner:
        """The connector with the place of its offsets; only a configuration that may name another than the worker's is parsed."""
        class_name = stored.config.get(CONNECTOR_CLASS) or ""
        may_name_one = (
            OFFSETS_TOPIC_KEY in stored.config
            or self._local.validator.may_have_offset_group(class_name)
        )
        return self._run_spec(stored) if may_name_one else NamedConnector(name=stored.name)

    def _run_spec(self, stored: StoredConnector) -> RunSpec:
        validator = self._local.validator
        try:
            return validator.run_spec(validator.resolved(stored.config))
        except ConfigError as error:
            raise BadRequestError(str(error)) from error

    @contextmanager
    def _held(self, name: str) -> Generator[None]:
        self._queue.hold(name, f"waiting for other requests about connector {name}")
        try:
            self._queue.ask(None, self._coordination.require_may_change)
            yield
        finally:
            self._queue.release(name)
