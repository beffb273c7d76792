"""Requests that another worker of the group has to answer: sent on to it, at most twice, as Kafka Connect's workers do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlencode, urlsplit

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ConflictError, ElsewhereError
from headrace.herder.internal_requests import ALGORITHM_HEADER, SIGNATURE_HEADER
from headrace.rest.peers import Peers
from headrace.rest.request import ApiRequest, ApiResponse

_log = logging.getLogger(__name__)
_HOP: Final = "forward"
_TOO_FAR: Final = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Sends requests on to *peers*. Any thread may call.

    *catch_up* is called after a request that another worker has granted: whoever asks here sees what was changed there.
    """

    peers: Peers = field(default_factory=Peers)
    catch_up: Callable[[], None] = lambda: None

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
        try:
            answer = self.peers.answer(request.method, url, request.body, _headers(request))
        except ConflictError as error:
            raise ConflictError(f"{elsewhere} {error}") from error
        if 200 <= answer.status < 300:  # noqa: PLR2004
            self._try_to_catch_up()
        if "Location" not in answer.headers:
            return answer
        location = request.origin + urlsplit(answer.headers["Location"]).path
        return replace(answer, headers={"Location": location})

    def _try_to_catch_up(self) -> None:
        try:
            self.catch_up()
        except ConnectError as error:
            # It is done, whatever this worker can see of it: asked again, it would be refused.
            _log.warning("What another worker has changed is not read yet: %s", error)


def _headers(request: ApiRequest) -> dict[str, str]:
    # Kafka Connect does not send signatures on, so that its next worker refuses such a request. The leader may have changed since it was
    # sent, and whom it reaches then knows the next one: the signature is of the body alone, and holds there, too.
    given = {
        "Authorization": request.authorization,
        SIGNATURE_HEADER: request.signature,
        ALGORITHM_HEADER: request.signature_algorithm,
    }
    return {name: value for name, value in given.items() if value is not None}
