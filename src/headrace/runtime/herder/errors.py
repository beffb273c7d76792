"""What a worker refuses to do, named by what the one who asked sees.

ConnectError
└── RequestError         .status is the HTTP status
    ├── BadRequestError      400: what was asked for is wrong
    ├── ForbiddenError       403: it is switched off here
    ├── NotFoundError        404
    ├── ConflictError        409: not now, because of something else that is going on
    │   └── AlreadyExistsError
    └── ServerError          500: it was tried and failed
"""

from __future__ import annotations

from typing import ClassVar

from headrace.connect.errors import ConnectError


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
