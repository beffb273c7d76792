"""Requests over HTTP whose targets are sent exactly as they were made.

The usual clients tidy a path up: ``..`` in it, even encoded, and the request is about another object.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning
from urllib3.response import BaseHTTPResponse

from headrace.connect.errors import TaskFailedError
from headrace.stores.connecting import Connecting
from headrace.stores.errors import StoreUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request; *path* is percent-encoded already, *query* is not."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None

    @property
    def target(self) -> str:
        """What stands behind the method. May hold a secret: never to be shown."""
        if not self.query:
            return self.path
        return f"{self.path}?{urlencode(self.query, quote_via=quote, safe='')}"


Login = Callable[[Request], Request]
"""Adds to a request what proves who asks. Raises as ``RestClient.send`` does."""


def nobody(request: Request) -> Request:
    """The :data:`Login` of those who ask without credentials."""
    return request


class Response:
    """An answer whose body has not been read. *place* begins the errors that reading raises."""

    def __init__(self, place: str, raw: BaseHTTPResponse) -> None:
        self.status = raw.status
        self.headers: Mapping[str, str] = raw.headers
        self._place = place
        self._raw = raw

    def read(self, count: int | None = None) -> bytes:
        """Up to *count* bytes as they were sent, or all. Raises ``StoreUnavailableError`` when cut."""
        with _telling(self._place):
            return self._raw.read(count, decode_content=False)

    def whole(self) -> bytes:
        """The body; the connection is free for the next request then."""
        try:
            data = self.read()
        except BaseException:
            self.close()
            raise
        self._raw.release_conn()
        return data

    def close(self) -> None:
        """Give the connection up: what was not read is not waited for."""
        self._raw.close()
        self._raw.release_conn()


class RestClient:
    """Sends requests to the server at *endpoint*, each once. Used by one thread at a time.

    The environment's proxy for https is used, but none for http.
    """

    def __init__(self, endpoint: str, connecting: Connecting, login: Login = nobody) -> None:
        self._pool = _pool_of(endpoint, connecting)
        self._ca_setting = connecting.ca_setting
        self._login = login

    def send(self, place: str, request: Request) -> Response:
        """The answer to *request*, whatever it says; *place* begins the errors.

        Raises ``StoreUnavailableError`` when there was none, and ``TaskFailedError`` for a server that is
        not to be trusted. Neither shows the request.
        """
        request = self._login(request)
        with _telling(place, self._ca_setting):
            raw = self._pool.urlopen(
                request.method,
                request.target,
                body=request.body,
                headers={"User-Agent": "headrace", **request.headers},
                retries=False,
                redirect=False,
                preload_content=False,
            )
        return Response(place, raw)


def _pool_of(endpoint: str, connecting: Connecting) -> urllib3.HTTPConnectionPool:
    address = urlsplit(endpoint)
    host = address.hostname or ""
    options: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=connecting.connect_seconds, read=connecting.read_seconds)
    }
    if address.scheme == "https":
        options["cert_reqs"] = "CERT_REQUIRED" if connecting.verify else "CERT_NONE"
        options["ca_certs"] = connecting.ca_file
    if not connecting.verify:
        # Whoever switched it off knows, and would be told with each request.
        urllib3.disable_warnings(InsecureRequestWarning)
    proxy = getproxies().get("https") if address.scheme == "https" else None
    if proxy and not proxy_bypass(host):
        manager = urllib3.ProxyManager(proxy, **options)
    else:
        manager = urllib3.PoolManager(**options)
    return manager.connection_from_host(host, address.port, address.scheme)


@contextmanager
def _telling(place: str, ca_setting: str = "") -> Generator[None]:
    try:
        yield
    except (HTTPError, HTTPException, OSError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise TaskFailedError(
                f"{place}: {error} Check the endpoint, or name the certificates to trust in {ca_setting}."
            ) from error
        raise StoreUnavailableError(f"{place}: {error}") from error
