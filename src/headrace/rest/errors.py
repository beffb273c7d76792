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
    """A request that HTTP itself refuses, with the web framework's words: ``HTTP 404 Not Found``."""

    def __init__(
        self, status: int, message: str | None = None, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.headers = headers or {}
        super().__init__(message or f"HTTP {status} {http.HTTPStatus(status).phrase}")


class BodyError(Exception):
    """A body that cannot be read as what the request needs; Kafka Connect answers these with 500."""


def failure(
    status: int, message: str | None, headers: Mapping[str, str] | None = None
) -> ApiResponse:
    """The answer that tells an error."""
    content = {"error_code": status, "message": message}
    return ApiResponse(status=status, content=content, headers=headers or {})


def told(error: Exception, asked_for: str) -> ApiResponse:
    """*error* as an answer; what no one has foreseen is logged with its trace and *asked_for*."""
    message = str(error) or None
    if isinstance(error, HttpError):
        return failure(error.status, message, error.headers)
    if isinstance(error, RequestError):
        return failure(error.status, message)
    if isinstance(error, BodyError):
        return failure(500, message)
    if isinstance(error, ConnectError):
        _log.error("%s has failed: %s", asked_for, message)
    else:
        _log.error("%s has failed", asked_for, exc_info=error)
    return failure(500, message)
