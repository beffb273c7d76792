"""Requests that another worker of the group has to answer: sent on to it, at most twice, as Kafka Connect's workers do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ConflictError, ElsewhereError
from headrace.herder.request_signing import (
    ALGORITHM_HEADER,
    REQUESTER_HEADER,
    SIGNATURE_HEADER,
    Requesters,
)
from headrace.herder.requests import REQUEST_SECONDS
from headrace.rest.peers import Peers
from headrace.rest.request import ApiRequest, ApiResponse

_log = logging.getLogger(__name__)
_HOP: Final = "forward"
_READING: Final = ("GET", "HEAD")
_TOO_FAR: Final = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Sends requests on to *peers*. Any thread may call.

    *catch_up* is called after a change that another worker has granted: whoever asks here sees what was changed there.
    By *requesters*, if there are some, that worker knows who has asked here.
    """

    peers: Peers = field(default_factory=Peers)
    catch_up: Callable[[], None] = lambda: None
    requesters: Requesters | None = None

    def with_requester(self, request: ApiRequest) -> ApiRequest:
        """*request* as asked for by whom the worker that has sent it on, if one has, tells; otherwise as it is."""
        if self.requesters is None or request.requester is None:
            return request
        who = self.requesters.believed(request.requester, request.as_signed)
        return request if who is None else replace(request, user=who)

    def answered(
        self,
        request: ApiRequest,
        elsewhere: ElsewhereError,
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> ApiResponse:
        """The answer of the worker that *elsewhere* names; called in the thread of the request, which waits for it, for *seconds* at most.

        Raises :class:`~headrace.herder.errors.ConflictError` after two hops, and while that worker, or something else in its place,
        does not answer as one.
        """
        hop = request.text(_HOP)
        if hop not in (None, "true"):
            raise ConflictError(_TOO_FAR)
        query = {key: values for key, values in request.query.items() if key != _HOP}
        sent = replace(request, query={**query, _HOP: ["false" if hop else "true"]})
        url = f"{elsewhere.url.rstrip('/')}{sent.path}?{sent.query_text}"
        try:
            answer = self.peers.answer(
                sent.method,
                url,
                sent.body,
                self._headers(sent),
                seconds=seconds,
                is_over=elsewhere.is_over,
            )
        except ConflictError as error:
            raise ConflictError(f"{elsewhere} {error}") from error
        if sent.method not in _READING and 200 <= answer.status < 300:  # noqa: PLR2004
            self._try_to_catch_up()
        if "Location" not in answer.headers:
            return answer
        location = request.origin + urlsplit(answer.headers["Location"]).path
        return replace(answer, headers={"Location": location})

    def _headers(self, request: ApiRequest) -> dict[str, str]:
        # Kafka Connect does not send signatures on, so that its next worker refuses such a request. The leader may have changed since it was
        # sent, and whom it reaches then knows the next one: the signature is of the body alone, and holds there, too.
        told = None
        if self.requesters is not None and request.user is not None:
            told = self.requesters.told(request.user, request.as_signed)
        given = {
            "Authorization": request.authorization,
            SIGNATURE_HEADER: request.signature,
            ALGORITHM_HEADER: request.signature_algorithm,
            REQUESTER_HEADER: told,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _try_to_catch_up(self) -> None:
        try:
            self.catch_up()
        except ConnectError as error:
            # It is done, whatever this worker can see of it: asked again, it would be refused.
            _log.warning("What another worker has changed is not read yet: %s", error)
