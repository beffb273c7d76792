"""Errors as answers: which status, and ``{"error_code", "message"}``."""

from __future__ import annotations

import http
import logging
from collections.abc import Mapping

from headrace.connect.errors import ConnectError
from headrace.herder.errors import RequestError
from headrace.rest.request import ApiResponse

_log = logging.getLogger(__name__)


class HttpError(Exception):
    """An error of HTTP, with the message of Kafka Connect's web framework: ``HTTP 404 Not Found``."""

    def __init__(
        self, status: int, message: str | None = None, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.headers = headers or {}
        super().__init__(message or f"HTTP {status} {http.HTTPStatus(status).phrase}")


class BodyError(Exception):
    """A body that cannot be deserialised as the request requires; Kafka Connect answers these with 500."""


def failure(
    status: int, message: str | None, headers: Mapping[str, str] | None = None
) -> ApiResponse:
    """An error response."""
    content = {"error_code": status, "message": message}
    return ApiResponse(status=status, content=content, headers=headers or {})


def error_response(error: Exception, requested: str) -> ApiResponse:
    """*error* as a response; an unexpected one is logged with its trace and the *requested* method and path."""
    message = str(error) or None
    if isinstance(error, HttpError):
        return failure(error.status, message, error.headers)
    if isinstance(error, RequestError):
        return failure(error.status, message)
    if isinstance(error, BodyError):
        return failure(500, message)
    if isinstance(error, ConnectError):
        _log.error("%s failed: %s", requested, message)
    else:
        _log.error("%s failed", requested, exc_info=error)
    return failure(500, message)
