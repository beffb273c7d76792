"""Who may write for a connector: every older owner is fenced, and how many may write is remembered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headrace.connect.task import Offsets
from headrace.kafka.deadline import Deadline
from headrace.observe.events import Committed
from headrace.runtime.running.fencing import ids_to_fence
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import TaskCount

_log = logging.getLogger(__name__)


class Ownership:
    """One connector's, used by its thread. *dirty* while somebody who is not known to have ended may write."""

    def __init__(
        self, spec: RunSpec, services: Services, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec = spec
        self._services = services
        self._clock = clock
        self.slots = min(spec.max_tasks, services.capacity.slots)
        # Whose tasks are not counted may have as many writers as there is room for.
        self._writers = self.slots if spec.enforces_max_tasks else services.capacity.slots
        self.dirty = True

    def take_over(self, *, give_up: Callable[[], bool]) -> None:
        """Fence; then put what others stored under bytes of their own under ours, which are all that slots write.

        Two forms of one offset would be left otherwise, and a reader that finds only the old one.
        """
        self.fence(give_up=give_up)
        self._services.offsets.keep_only(self._spec)
        offsets = self._services.offsets.of(self._spec)
        foreign = offsets.foreign()
        if foreign:
            self.commit(foreign)
        # Whoever died between a commit and its copy has left the copy to us.
        offsets.catch_up()

    def fence(self, *, give_up: Callable[[], bool]) -> None:
        """Make every earlier owner unable to write, and remember how many there may be of us.

        Raises as :class:`~headrace.runtime.services.Fence` does.
        """
        spec, services = self._spec, self._services
        if spec.exactly_once:
            stored = services.configs.task_count(spec.name)
            ids = ids_to_fence(services.group_id, spec.name, stored=stored, current=self._writers)
            services.fence(spec, ids, give_up=give_up)
            services.configs.put_task_count(spec.name, TaskCount(slots=self._writers, clean=False))
        self.dirty = False

    def commit(self, offsets: Offsets) -> None:
        """Commit offsets without records, while no slot runs."""
        # What a failure leaves open is ended by fencing, before offsets are read again.
        self.dirty = True
        self._services.commit_offsets(self._spec, offsets)
        self.dirty = False
        self._services.tell(Committed(connector=self._spec.name, offsets=len(offsets)))

    def let_go(self) -> None:
        """Say that nothing of this connector can write any more, and see to it that it is so.

        Gives up after the time that slots get to end; the next start does it then.
        """
        self._settle_copies()
        if not self._spec.exactly_once:
            return
        if self.dirty:
            deadline = Deadline.after(self._services.timing.grace, self._clock)
            self.fence(give_up=lambda: deadline.expired)
        count = TaskCount(slots=self._writers, clean=True)
        self._services.configs.put_task_count(self._spec.name, count)

    def _settle_copies(self) -> None:
        seconds = self._services.timing.grace
        if not self._services.offsets.of(self._spec).settle(seconds):
            _log.warning(
                "Connector %s has ended before its last offsets were copied to the worker's. They are in its own "
                "topic (offsets.storage.topic); its next start copies them.",
                self._spec.name,
            )
