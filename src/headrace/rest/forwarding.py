"""Requests that another worker of the group has to answer: sent on to it, at most twice, as Kafka Connect's workers do."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode, urlsplit

import httpx

from headrace.herder.errors import ConflictError, ElsewhereError
from headrace.herder.requests import REQUEST_SECONDS
from headrace.rest.request import JSON, ApiRequest, ApiResponse, nothing

_HOP: Final = "forward"
_TOO_FAR: Final = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)
_CONNECT_SECONDS: Final = 10.0
_NO_CONTENT: Final = 204


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Sends requests on.

    *trust* checks the certificates of workers at https; ``None`` for the machine's own authorities. *catch_up* is called after a
    request that another worker has granted: whoever asks here sees what was changed there.
    """

    trust: ssl.SSLContext | None = field(default=None, repr=False)
    catch_up: Callable[[], None] = lambda: None

    def answered(self, request: ApiRequest, elsewhere: ElsewhereError) -> ApiResponse:
        """The answer of the worker that *elsewhere* names; called in the thread of the request, which waits for it.

        Raises :class:`~headrace.herder.errors.ConflictError` after two hops, and while that worker does not answer.
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
        timeout = httpx.Timeout(REQUEST_SECONDS, connect=_CONNECT_SECONDS)
        verify = True if self.trust is None else self.trust
        try:
            # A worker is asked by its own address, whatever proxies this process has.
            with httpx.Client(verify=verify, timeout=timeout, trust_env=False) as client:
                answer = client.request(request.method, url, content=request.body, headers=headers)
        except httpx.TransportError as error:
            raise ConflictError(
                f"{elsewhere} It does not answer at {elsewhere.url} ({error or type(error).__name__}). Retry later."
            ) from error
        if answer.is_success:
            self.catch_up()
        return _response(answer, request.origin)


def _response(answer: httpx.Response, origin: str) -> ApiResponse:
    if answer.status_code == _NO_CONTENT or not answer.content:
        return nothing(answer.status_code)
    headers = dict[str, str]()
    if "location" in answer.headers:
        headers["Location"] = origin + urlsplit(answer.headers["location"]).path
    return ApiResponse(status=answer.status_code, content=answer.json(), headers=headers)
