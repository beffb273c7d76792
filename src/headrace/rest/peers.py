"""Requests that a worker sends to others of its group: the HTTP client, and what answers that are none of a worker mean."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from headrace.herder.errors import ConflictError, error_of
from headrace.herder.requests import REQUEST_SECONDS
from headrace.observe.log_format import in_log_context
from headrace.rest.request import JSON, ApiResponse, nothing

if TYPE_CHECKING:
    import httpx

_CONNECT_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.5
_OK: Final = range(200, 300)
_REFUSED: Final = range(400, 600)


class Peers:
    """The client of the other workers. Any thread may call, and waits for the answer.

    *trust* checks the certificates of workers at https, and shows this worker's own; ``None`` for the machine's authorities.
    """

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        self._trust = trust
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def put(
        self,
        method: str,
        url: str,
        body: bytes,
        signed: Mapping[str, str],
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> None:
        """See :class:`~headrace.herder.request_signing.Peers`."""
        answer = self.answer(method, url, body, signed, seconds=seconds)
        if answer.status in _OK:
            return
        content = answer.content
        message = (
            cast("dict[str, object]", content).get("message") if isinstance(content, dict) else None
        )
        if answer.status not in _REFUSED or not isinstance(message, str):
            raise _no_worker(url, answer.status)
        raise error_of(answer.status, message)

    def answer(
        self,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        seconds: float = REQUEST_SECONDS,
        is_over: Callable[[], bool] | None = None,
    ) -> ApiResponse:
        """The answer of the worker at *url*, which is a whole URL, whatever its status; with its own ``Location``.

        It is waited for *seconds*, or until *is_over* says that this worker is no longer the one to be asked, as when it is frozen and
        the group goes on without it.

        Raises :class:`~headrace.herder.errors.ConflictError` while that worker, or something else in its place, does not answer as one.
        """
        ask = partial(self._answer, method, url, body, headers, seconds=seconds)
        return ask() if is_over is None else _unless(is_over, ask, url)

    def _answer(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float
    ) -> ApiResponse:
        # Only a worker that sends requests needs it, and it is slow to import.
        from httpx import InvalidURL, RequestError, Timeout  # noqa: PLC0415

        sent = {"Accept": JSON, "User-Agent": "kafka-connect", **headers}
        if body:
            sent["Content-Type"] = JSON
        try:
            answer = self._opened().request(
                method,
                url,
                content=body,
                headers=sent,
                timeout=Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
            )
        except (RequestError, InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise ConflictError(
                f"The worker at {_base(url)} does not answer ({reason}). Retry later."
            ) from error
        try:
            return _response(answer)
        except ValueError as error:
            raise _no_worker(url, answer.status_code) from error

    def close(self) -> None:
        """Close the connections; may be repeated."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _opened(self) -> httpx.Client:
        # Made when it is first needed, as it reads the machine's authorities, and kept, as that takes long.
        from httpx import Client  # noqa: PLC0415

        with self._lock:
            if self._client is None:
                self._client = Client(
                    verify=True if self._trust is None else self._trust,
                    # A worker is asked by its own address, whatever proxies this process has.
                    trust_env=False,
                )
            return self._client


def _unless(is_over: Callable[[], bool], ask: Callable[[], ApiResponse], url: str) -> ApiResponse:
    answer = Future[ApiResponse]()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            answer.set_exception(error)

    # Not of a pool: one that is given up waits on, as long as a request may take.
    threading.Thread(target=in_log_context(run), name="headrace-forwarding", daemon=True).start()
    while wait([answer], timeout=_LOOK_SECONDS).not_done:
        if is_over():
            raise ConflictError(
                f"The worker at {_base(url)} has not answered, and is no longer the one to ask: whether it has done what was asked is not "
                "known. Look, and ask again."
            )
    return answer.result()


def _no_worker(url: str, status: int) -> ConflictError:
    return ConflictError(
        f"What answers at {_base(url)} is no worker (HTTP {status}, without JSON of a worker). Retry later."
    )


def _base(url: str) -> str:
    return "/".join((*url.split("/", 3)[:3], ""))


def _response(answer: httpx.Response) -> ApiResponse:
    if not answer.content:
        return nothing(answer.status_code)
    location = answer.headers.get("location")
    return ApiResponse(
        status=answer.status_code,
        content=answer.json(),
        headers={} if location is None else {"Location": location},
    )
