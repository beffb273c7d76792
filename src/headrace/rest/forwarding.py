"""Requests that another worker of the group has to answer: sent on to it, at most twice, as Kafka Connect's workers do."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ConflictError, ElsewhereError
from headrace.herder.requests import REQUEST_SECONDS
from headrace.rest.request import JSON, ApiRequest, ApiResponse, nothing

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)
_HOP: Final = "forward"
_TOO_FAR: Final = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)
_CONNECT_SECONDS: Final = 10.0
_NO_CONTENT: Final = 204


class Forwarding:
    """Sends requests on. Any thread may call.

    *trust* checks the certificates of workers at https; ``None`` for the machine's own authorities. *catch_up* is called after a
    request that another worker has granted: whoever asks here sees what was changed there.
    """

    def __init__(
        self, trust: ssl.SSLContext | None = None, catch_up: Callable[[], None] = lambda: None
    ) -> None:
        self._trust = trust
        self._catch_up = catch_up
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def answered(self, request: ApiRequest, elsewhere: ElsewhereError) -> ApiResponse:
        """The answer of the worker that *elsewhere* names; called in the thread of the request, which waits for it.

        Raises :class:`~headrace.herder.errors.ConflictError` after two hops, and while that worker, or something else in its place,
        does not answer as one.
        """
        hop = request.text(_HOP)
        if hop not in (None, "true"):
            raise ConflictError(_TOO_FAR)
        query = [(key, each) for key, values in request.query.items() for each in values]
        query = [
            *((key, each) for key, each in query if key != _HOP),
            (_HOP, "false" if hop else "true"),
        ]
        url = f"{elsewhere.url.rstrip('/')}{request.path}?{urlencode(query)}"
        headers = {"Accept": JSON, "User-Agent": "kafka-connect"}
        if request.body:
            headers["Content-Type"] = JSON
        if request.authorization is not None:
            headers["Authorization"] = request.authorization
        # Only a follower needs it, and it is slow to import.
        from httpx import TransportError  # noqa: PLC0415

        try:
            answer = self._opened().request(
                request.method, url, content=request.body, headers=headers
            )
        except TransportError as error:
            raise ConflictError(
                f"{elsewhere} It does not answer at {elsewhere.url} ({error or type(error).__name__}). Retry later."
            ) from error
        try:
            response = _response(answer, request.origin)
        except ValueError as error:
            raise ConflictError(
                f"{elsewhere} What answers at {elsewhere.url} is no worker (HTTP {answer.status_code}, without JSON). Retry later."
            ) from error
        if answer.is_success:
            self._try_to_catch_up()
        return response

    def _try_to_catch_up(self) -> None:
        try:
            self._catch_up()
        except ConnectError as error:
            # It is done, whatever this worker can see of it: asked again, it would be refused.
            _log.warning("What another worker has changed is not read yet: %s", error)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _opened(self) -> httpx.Client:
        # Made when it is first needed, as it reads the machine's authorities, and kept, as that takes long.
        from httpx import Client, Timeout  # noqa: PLC0415

        with self._lock:
            if self._client is None:
                self._client = Client(
                    verify=True if self._trust is None else self._trust,
                    timeout=Timeout(REQUEST_SECONDS, connect=_CONNECT_SECONDS),
                    # A worker is asked by its own address, whatever proxies this process has.
                    trust_env=False,
                )
            return self._client


def _response(answer: httpx.Response, origin: str) -> ApiResponse:
    if answer.status_code == _NO_CONTENT or not answer.content:
        return nothing(answer.status_code)
    headers = dict[str, str]()
    if "location" in answer.headers:
        headers["Location"] = origin + urlsplit(answer.headers["location"]).path
    return ApiResponse(status=answer.status_code, content=answer.json(), headers=headers)
