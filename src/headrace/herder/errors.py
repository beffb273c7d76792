"""What a worker refuses to do, named by what the one who asked sees."""

from __future__ import annotations

from typing import ClassVar

from headrace.connect.errors import ConnectError
from headrace.herder.answers import ConfigInfos


class RequestError(ConnectError):
    """A request that is answered with an error; the message is the answer's ``message``, word for word."""

    status: ClassVar[int] = 500


class BadRequestError(RequestError):
    """What was asked for is wrong in itself, or not possible in the connector's present state."""

    status = 400


class ForbiddenError(RequestError):
    """The worker's configuration has this switched off."""

    status = 403


class NotFoundError(RequestError):
    """There is no such connector, task, plugin or logger."""

    status = 404


class ConflictError(RequestError):
    """Something else is going on with the same connector; the same request may succeed a little later."""

    status = 409


class AlreadyExistsError(ConflictError):
    """A connector of this name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Connector {name} already exists")


class ServerError(RequestError):
    """It was tried and failed."""

    status = 500


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
