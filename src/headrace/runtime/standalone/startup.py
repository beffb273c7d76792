"""A worker's start: what is stored is looked after at once, and runs when Kafka has been reached."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence

from headrace.runtime.herder.states import TargetState
from headrace.runtime.services import RunSpec
from headrace.runtime.standalone.herder_statuses import HerderStatuses
from headrace.runtime.standalone.inbox import Inbox
from headrace.runtime.standalone.kafka_gate import KafkaGate
from headrace.runtime.standalone.parts import KafkaParts, LocalParts
from headrace.runtime.standalone.reconciler import Reconciler
from headrace.runtime.standalone.stages import Stages
from headrace.runtime.standalone.submitted_configs import texts
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)


class Startup:
    """Begun by the herder's owner; Kafka is waited for on a thread of its own, which *opening* may keep."""

    def __init__(
        self,
        local: LocalParts,
        opening: Callable[[], KafkaParts],
        gate: KafkaGate,
        inbox: Inbox,
        *,
        stages: Stages,
        reconciler: Reconciler,
    ) -> None:
        self._local = local
        self._opening = opening
        self._gate = gate
        self._inbox = inbox
        self._stages = stages
        self._reconciler = reconciler
        self._only: Collection[str] | None = None
        self._is_ready = threading.Event()
        self._is_over = threading.Event()

    def begin(self, only: Collection[str] | None) -> None:
        """Look after the stored connectors, or *only* these; return before Kafka is there."""
        self._only = only
        self._inbox.ask("loading the stored connectors", self._load)
        unsettled = self._local.unsettled()
        for name in unsettled:
            self._inbox.hold(name, f"settling the offsets of connector {name}")
        threading.Thread(
            target=self._open, args=(unsettled,), name="headrace-opening", daemon=True
        ).start()

    def ready(self) -> None:
        """Let connectors run, as soon as Kafka is there."""
        self._is_ready.set()

    @property
    def is_over(self) -> bool:
        """Whether Kafka has been reached and connectors run."""
        return self._is_over.is_set()

    def _load(self) -> None:
        # Requests are not answered before this: each write that waits for the disk by itself would be felt.
        with self._local.together():
            self._load_all()

    def _load_all(self) -> None:
        stored = self._local.configs.connectors()
        statuses = HerderStatuses(self._local)
        for ghost in set(self._local.statuses.connectors()) - stored.keys():
            statuses.forget(ghost)
        for name, each in stored.items():
            if self._reconciler.has(name):
                continue
            statuses.unassigned(name)
            target = TargetState(each.target_state)
            # One that is not to run is left alone by being shown as it is.
            if self._only is None or name in self._only or target is not TargetState.RUNNING:
                self._reconciler.want(name, target)

    def _open(self, unsettled: Sequence[str]) -> None:
        try:
            with self._stages.during("initializing and reading to the end of internal topics"):
                kafka = self._opening()
                self._settle(kafka)
        except Exception as error:  # noqa: BLE001 (whoever waits for the worker is told)
            self._gate.refuse(error)
            return
        self._gate.open(kafka)
        # A creation that was half done may have become a connector.
        self._inbox.tell(self._load)
        for name in unsettled:
            self._inbox.let_go(name)
        self._is_ready.wait()
        self._inbox.tell(lambda: self._reconciler.opened(kafka))
        self._inbox.tell(self._is_over.set)

    def _settle(self, kafka: KafkaParts) -> None:
        def admitted(stored: StoredConnector) -> RunSpec:
            return self._local.admission.admitted(texts(stored.config))

        for name, error in kafka.changes.recover(admitted).items():
            _log.error(
                "A change of the offsets of connector %s is not settled, which its next start tries "
                "again: %s",
                name,
                error,
            )
