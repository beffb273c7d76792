"""Reads and writes the offsets of one connector that does not run, with errors in Kafka Connect's words."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from headrace.connect.errors import ConnectError, RetriableError
from headrace.connect.task import Offsets
from headrace.runtime.herder.errors import RequestError, ServerError
from headrace.runtime.offset_changes.difference import Known
from headrace.runtime.running.ownership import Ownership
from headrace.runtime.services import RunSpec, Services

_log = logging.getLogger(__name__)


class OffsetWriter:
    """One connector's, for one change; used by the thread that makes it.

    Every method raises :class:`~headrace.runtime.herder.errors.ServerError`, caused by what went wrong.
    """

    def __init__(self, spec: RunSpec, services: Services) -> None:
        self._spec = spec
        self._services = services
        self._ownership = Ownership(spec, services)

    @property
    def is_local(self) -> bool:
        """Whether the offsets are in the same storage as what is kept of their changes."""
        return self._spec.offsets_topic is None

    def fence(self) -> None:
        """Make everybody who may still write for the connector unable to."""
        failed = "Failed to perform zombie fencing for source connector prior to modifying offsets"
        with self._told(late=failed, failed=failed):
            self._ownership.fence(give_up=lambda: False)

    def known(self) -> Known:
        """All offsets that are committed now."""
        late = (
            "Timed out while trying to read to the end of the offsets topic prior to modifying offsets "
            f"for source connector {self._spec.name}"
        )
        with self._told(late=late, failed=self._failed):
            return self._services.offsets.of(self._spec).current().known()

    def write(self, offsets: Offsets) -> None:
        """Commit *offsets*: all or none where there are transactions."""
        late = (
            "Timed out while attempting to modify offsets for source connector " + self._spec.name
        )
        with self._told(late=late, failed=self._failed):
            self._ownership.commit(offsets)

    @contextmanager
    def storing(self) -> Generator[None]:
        """For what is written into the worker's own storage."""
        with self._told(late=self._failed, failed=self._failed):
            yield

    def let_go(self) -> None:
        """Say that nobody writes for the connector now. When that fails, the next start fences."""
        try:
            self._ownership.let_go()
        except ConnectError:
            _log.exception(
                "Connector %s: its end as a writer of offsets was not stored.", self._spec.name
            )

    @property
    def _failed(self) -> str:
        return f"Failed to modify offsets for source connector {self._spec.name}"

    @contextmanager
    def _told(self, *, late: str, failed: str) -> Generator[None]:
        try:
            yield
        except RequestError:
            raise
        except RetriableError as error:
            raise self._caused(late, error) from error
        except Exception as error:
            raise self._caused(failed, error) from error

    def _caused(self, sentence: str, error: Exception) -> ServerError:
        cause = self._spec.hidden.masked(str(error))
        _log.error("%s: %s", sentence, cause)
        # Kafka Connect's words do not say why. What is no error of the contract may show anything.
        return ServerError(f"{sentence}: {cause}" if isinstance(error, ConnectError) else sentence)
