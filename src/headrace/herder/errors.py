"""Errors that a worker answers requests with, one class for each status."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from headrace.connect.errors import ConnectError, RetriableError
from headrace.herder.answers import ConfigInfos

NO_LEADER: Final = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
"""Kafka Connect's words for a :class:`ConflictError` while no worker can be asked."""


class RequestError(ConnectError):
    """A request that is answered with an error; the message is the answer's ``message``, word for word."""

    status: ClassVar[int] = 500


class BadRequestError(RequestError):
    """The request is invalid, or not possible in the connector's current state."""

    status = 400


class ForbiddenError(RequestError):
    """The worker's configuration does not allow it."""

    status = 403


class NotFoundError(RequestError):
    """There is no such connector, task, plugin or logger."""

    status = 404


class ConflictError(RequestError):
    """Another operation on the same connector is in progress; the request may succeed later."""

    status = 409


class AlreadyExistsError(ConflictError):
    """A connector of this name already exists."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Connector {name} already exists")


class ElsewhereError(ConflictError):
    """Another worker of the group has to answer the request, at *url*; REST sends it there.

    *is_over* says whether that worker is, by now, no longer the one to answer it. Any thread may ask.
    """

    def __init__(
        self, message: str, *, url: str, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(message)
        self.url = url
        self.is_over = is_over


class NotLeadingError(RetriableError):
    """Only the group's leader may write, which this worker is not, or not any more: a request that meets it is answered as a conflict."""


class ServerError(RequestError):
    """The operation failed."""

    status = 500


class UnavailableError(RequestError):
    """The worker is still starting; the request may succeed later."""

    status = 503


_BY_STATUS: Final = {
    each.status: each
    for each in (
        BadRequestError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        ServerError,
        UnavailableError,
    )
}


def error_of(status: int, message: str) -> RequestError:
    """The error that another worker has answered with *status*, which is 400 or more. Pure."""
    other = ServerError if status >= ServerError.status else BadRequestError
    return _BY_STATUS.get(status, other)(message)


_LAST = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


def refusal(infos: ConfigInfos) -> BadRequestError | None:
    """The error that answers a creation or change whose validation said *infos*; ``None`` if all is well.

    Pure. Called by herders, which raise it.
    """
    if not infos.error_count:
        return None
    lines = (message for each in infos.configs for message in each.value.errors)
    first = (
        "Connector configuration is invalid and contains the following "
        f"{infos.error_count} error(s):"
    )
    return BadRequestError("\n".join((first, *lines, _LAST)))
