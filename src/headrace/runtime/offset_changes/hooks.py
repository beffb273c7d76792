"""What a connector says about offsets that somebody wants it to have."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConnectError
from headrace.connect.task import Offsets
from headrace.observe.hidden import told_without
from headrace.runtime.herder.errors import ServerError
from headrace.runtime.offset_changes.difference import Known
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.services import RunSpec

_Answer = bool | Exception


class OffsetHooks:
    """The hooks of one connector, a fresh instance that is never started; used for one change.

    Every method raises :class:`~headrace.runtime.herder.errors.ServerError`: with the hook's own words where
    it refuses, with Kafka Connect's where it fails.
    """

    def __init__(self, spec: RunSpec, *, seconds: float) -> None:
        self._spec = spec
        self._seconds = seconds

    def validate(self, offsets: Offsets) -> None:
        """Let the connector refuse *offsets*; changes nothing, here or outside."""
        try:
            self._spec.connector.validate_offsets(self._spec.props, offsets)
        except Exception as error:  # noqa: BLE001 (whatever it is, whoever asked hears of it)
            raise self._refusal(error) from told_without(self._spec.hidden, error)

    def alter(self, offsets: Offsets, known: Known) -> bool:
        """Let the connector act before *offsets* are written; whether it says that they are all there is to do.

        *known* are the offsets that it may look at, those of its name. Waits so long as this was made with.
        """
        # A thread of its own, because nothing else ends the wait for a hook that hangs; its late answer
        # finds nobody.
        answers = queue.SimpleQueue[_Answer]()
        threading.Thread(
            target=lambda: answers.put(self._answer(offsets, known)),
            name=f"headrace-{self._spec.name}-hook",
            daemon=True,
        ).start()
        try:
            answer = answers.get(timeout=self._seconds)
        except queue.Empty:
            raise ServerError(
                f"Timed out while calling the 'alterOffsets' method for source connector {self._spec.name}"
            ) from None
        if isinstance(answer, Exception):
            raise self._refusal(answer) from told_without(self._spec.hidden, answer)
        return answer

    def _answer(self, offsets: Offsets, known: Known) -> _Answer:
        connector = self._spec.connector
        try:
            connector.initialize(_HookContext(known))
            return bool(connector.alter_offsets(self._spec.props, offsets))
        except Exception as error:  # noqa: BLE001 (whatever it is, the one who waits for it raises it)
            return error

    def _refusal(self, error: Exception) -> ServerError:
        name = self._spec.name
        if isinstance(error, ConnectError):
            return ServerError(self._spec.hidden.masked(str(error)))
        if isinstance(error, NotImplementedError):
            return ServerError(
                f"Failed to modify offsets for connector {name} because it doesn't support external "
                "modification of offsets"
            )
        return ServerError(f"Failed to modify offsets for source connector {name}")


def verdict(connector: SourceConnector) -> str:
    """What the silence of *connector*'s pure hook means, for somebody who tries offsets. Pure."""
    if _has(connector, SourceConnector.validate_offsets):
        return "The connector accepts these offsets."
    if _has(connector, SourceConnector.alter_offsets):
        return (
            "The connector cannot tell whether it accepts these offsets: it judges them only when they are "
            "about to be written."
        )
    return "The connector does not judge offsets."


def _has(connector: SourceConnector, hook: Callable[..., object]) -> bool:
    name = hook.__name__
    return getattr(type(connector), name) is not getattr(SourceConnector, name)


class _HookContext:
    """What a connector that is not running gets from the runtime: its offsets."""

    def __init__(self, known: Known) -> None:
        self.offsets = OffsetSnapshot(known)

    def request_task_reconfiguration(self) -> None:
        """There are no tasks."""

    def raise_error(self, error: Exception) -> None:
        """Nothing runs that could fail; the hook raises instead."""
        raise error
