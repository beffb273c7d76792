"""Validation of the offsets in requests: by their form, and by the connector's own hooks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConnectError
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.herder.errors import BadRequestError, RequestError, ServerError
from headrace.herder.requests import NOTHING_GIVEN, OffsetChange
from headrace.observe.log_format import in_log_context
from headrace.observe.secret_masking import without_secrets
from headrace.offsets.codec import decoded_value, encoded_value
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.services import RunSpec

_INT64 = range(-(2**63), 2**63)
_Answer = bool | Exception
_Refused = Callable[[str], RequestError]


def offsets_to_alter(changes: Sequence[OffsetChange]) -> Offsets:
    """The offsets that a request to alter them asks for; of several changes of one partition the last one counts.

    Raises :class:`~headrace.herder.errors.RequestError`: 400 for an empty request, and 500, as Kafka
    Connect does, for an invalid offset.
    """
    if not changes:
        raise BadRequestError(NOTHING_GIVEN)
    return _offsets(changes, ServerError)


def initial_offsets_of(changes: Sequence[OffsetChange]) -> Offsets:
    """The initial offsets of a creation (KIP-995); any other form than that of altering is a 400."""
    if not changes:
        raise BadRequestError(
            "initial_offsets holds no partitions and offsets; leave it out, or give at least one"
        )
    return _offsets(changes, BadRequestError)


def _offsets(changes: Sequence[OffsetChange], refused: _Refused) -> Offsets:
    offsets = dict[SourcePartition, SourceOffset | None]()
    for change in changes:
        partition, offset = _read(change.partition, refused), _read(change.offset, refused)
        if partition is not None:
            offsets[SourcePartition(partition)] = offset
        elif offset is not None:
            raise refused("Partition objects cannot be null")
    return offsets


def _read(given: object, refused: _Refused) -> SourceOffset | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise refused("Offsets must be specified as a Map")
    for field, value in cast("Mapping[object, object]", given).items():
        if not isinstance(field, str):
            raise refused("Offsets may only use String keys")
        kind = _other_than_primitive(value)
        if kind is not None:
            rule = "Offsets may only contain primitive types as values, but field"
            raise refused(f"{rule} {field} contains {kind}")
    return _normalised(cast("SourceOffset", given))


def _other_than_primitive(value: object) -> str | None:
    """Kafka Connect's name of *value*'s type, when an offset cannot hold it."""
    match value:
        case None | str() | float():
            return None
        case int():
            return None if value in _INT64 else "class java.math.BigInteger"
        case Mapping():
            return "MAP"
        case list() | tuple():
            return "ARRAY"
        case _:
            return type(value).__name__


def _normalised(values: Mapping[str, OffsetValue]) -> SourceOffset:
    """*values* as they are after being stored and read again, which is how hooks and readers see them."""
    try:
        return cast("SourceOffset", decoded_value(encoded_value(values)))
    except ValueError as error:
        raise BadRequestError(str(error)) from error


class OffsetHooks:
    """The hooks of one connector, a fresh instance that is never started; used for one change.

    Every method raises :class:`~headrace.herder.errors.ServerError`: with the hook's message when it
    refuses, with Kafka Connect's when it fails.
    """

    def __init__(self, spec: RunSpec, *, seconds: float) -> None:
        self._spec = spec
        self._seconds = seconds

    def validate(self, offsets: Offsets) -> None:
        """Let the connector refuse *offsets*; changes nothing, here or in external systems."""
        try:
            self._spec.connector.validate_offsets(self._spec.props, offsets)
        except Exception as error:  # noqa: BLE001 (any error is an answer to the caller)
            raise self._refusal(error) from without_secrets(self._spec.secrets, error)

    def alter(self, offsets: Offsets, known: Mapping[SourcePartition, SourceOffset]) -> bool:
        """Call the connector's hook before *offsets* are written; returns whether it has handled everything.

        *known* are the offsets that the hook may read. Waits at most for the seconds given to the constructor.
        """
        return self._called(lambda: self._altered(offsets, known))

    def check(self, offsets: Offsets) -> None:
        """Let the connector refuse *offsets* that the source does not have; changes nothing, and waits as :meth:`alter`."""

        def ask() -> bool:
            self._spec.connector.check_offsets(self._spec.props, offsets)
            return True

        self._called(ask)

    def _called(self, hook: Callable[[], bool]) -> bool:
        # A thread of its own, because nothing else ends the wait for a hook that hangs; its late answer is
        # ignored.
        answers = queue.SimpleQueue[_Answer]()
        threading.Thread(
            target=in_log_context(lambda: answers.put(_answer(hook))),
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
            raise self._refusal(answer) from without_secrets(self._spec.secrets, answer)
        return answer

    def _altered(self, offsets: Offsets, known: Mapping[SourcePartition, SourceOffset]) -> bool:
        connector = self._spec.connector
        connector.initialize(_HookContext(known, self._spec.target))
        return bool(connector.alter_offsets(self._spec.props, offsets))

    def _refusal(self, error: Exception) -> ServerError:
        name = self._spec.name
        if isinstance(error, ConnectError):
            return ServerError(self._spec.secrets.masked(str(error)))
        if isinstance(error, NotImplementedError):
            return ServerError(
                f"Failed to modify offsets for connector {name} because it doesn't support external "
                "modification of offsets"
            )
        return ServerError(f"Failed to modify offsets for source connector {name}")


def _answer(hook: Callable[[], bool]) -> _Answer:
    try:
        return hook()
    except Exception as error:  # noqa: BLE001 (the waiting thread raises it)
        return error


def verdict(connector: SourceConnector) -> str:
    """What it means for a dry run that *connector*'s pure hook has not refused the offsets. Pure."""
    if _has(connector, SourceConnector.validate_offsets):
        return "The connector accepts these offsets."
    if _has(connector, SourceConnector.alter_offsets):
        return (
            "It is unknown whether the connector accepts these offsets: it validates them only when they are "
            "about to be written."
        )
    return "The connector does not validate offsets."


def _has(connector: SourceConnector, hook: Callable[..., object]) -> bool:
    name = hook.__name__
    return getattr(type(connector), name) is not getattr(SourceConnector, name)


class _HookContext:
    """The context of a connector that is not running: its offsets."""

    command_options = ""

    def __init__(
        self, known: Mapping[SourcePartition, SourceOffset], target: Mapping[str, str]
    ) -> None:
        self.offsets = OffsetSnapshot(known)
        self.target = target

    def request_task_reconfiguration(self) -> None:
        """Do nothing: there are no tasks."""

    def raise_error(self, error: Exception) -> None:
        """Raise *error*: nothing runs that could fail."""
        raise error
