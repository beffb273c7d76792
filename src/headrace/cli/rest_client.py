"""The client of a worker's REST API; the only module of the command line that connects to one."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeVar

import httpx
import msgspec

from headrace.cli.table import one_line
from headrace.connect.errors import ConnectError
from headrace.rest.request import segment

# More would fill the screen, and hide the right one.
_FEW: Final = 8


def known_names(names: Collection[str], wanted: str) -> str:
    """A phrase about the existing connectors: all *names* if they are few, otherwise those similar to *wanted*."""
    if not names:
        return "there are no connectors"
    if len(names) == 1:
        return f"there is the connector {_listed(names)}"
    if len(names) <= _FEW:
        return f"there are the connectors {_listed(sorted(names))}"
    alike = get_close_matches(wanted, names)
    shown = (
        f"{_listed(alike)} and {len(names) - len(alike)} more" if alike else f"{len(names)} of them"
    )
    return f"'headrace connectors list' shows the connectors: {shown}"


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(one_line, names))


def _is_refused(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ConnectionRefusedError):
        # httpx's library takes the cause away.
        error = error.__cause__ or error.__context__
    return error is not None


def _advice(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return (
            "If a CA of your own has signed the worker's certificate, name that CA's certificates, a PEM file, in the variable "
            "SSL_CERT_FILE. The host of --url or HEADRACE_URL has to be one that the worker's certificate names."
        )
    if "[SSL" in str(error):
        return "Is it a listener with https? Choose another with --url or HEADRACE_URL."
    return "Start one with 'headrace run' or 'headrace worker', or choose another with --url or HEADRACE_URL."


Form = TypeVar("Form")
Query = Mapping[str, str | Sequence[str]]

_UNKNOWN: Final = 404
_NO_SUCH_PATH: Final = "HTTP 404 Not Found"
_CONNECTORS: Final = ("connectors",)
_ADMIN: Final = ("admin",)
_UNAUTHORIZED: Final = 401
# The worker answers within 90 seconds, also when the operation takes longer.
_ANSWER_SECONDS: Final = 100.0
_CONNECT_SECONDS: Final = 5.0
_LOGIN = "Give a user with --user; the password is taken from HEADRACE_PASSWORD or prompted for."


class WorkerError(ConnectError):
    """The worker refused the request, with its own message, or could not be reached."""


class LoginError(WorkerError):
    """The worker answers only its users, and this is none of them."""


class UnreachableError(WorkerError):
    """There is no connection to the worker's address."""


class NoWorkerError(UnreachableError):
    """Nothing listens at the worker's address: its machine has refused the connection."""


class RestClient:
    """A client of the worker at *url*, which contains no user; *login* is a user and a password.

    Waits for an answer for *seconds*, for a connection for five at most. With *transport* there is no connection: it gets
    the requests. Used by one thread, as a context manager. Every method raises :class:`WorkerError`.
    """

    def __init__(
        self,
        url: str,
        *,
        login: tuple[str, str] | None = None,
        seconds: float = _ANSWER_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._seconds, self._login, self._transport = seconds, login, transport
        # It logs every request at INFO, which is too much for a command.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        # Certificates are loaded for TLS only: it takes half of a command's time.
        has_tls = self.url.lower().startswith("https:")
        timeout = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        self._http = httpx.Client(auth=login, timeout=timeout, verify=has_tls, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def at(self, url: str, *, seconds: float) -> Self:
        """A client of another worker of the same group, with the same login: the workers send it on to each other, too."""
        return type(self)(url, login=self._login, seconds=seconds, transport=self._transport)

    def get(self, *path: str, **query: str | Sequence[str]) -> object:
        """The answer to ``GET``; the segments of *path* may hold any character."""
        return self.request("GET", *path, query=query)

    def request(
        self,
        method: str,
        *path: str,
        body: object = None,
        query: Query | None = None,
    ) -> object:
        """The JSON of the answer; ``None`` for an answer without a body."""
        answer = self._sent(method, path, body, query or {})
        if not answer.is_success:
            self._refuse(answer, path)
        return self._json(answer) if answer.content else None

    def request_dry_run(self, method: str, *path: str, body: object = None) -> object:
        """As :meth:`request`, in a dry run."""
        # Kafka Connect ignores unknown parameters, and would make the change.
        known = self._sent("OPTIONS", ("connectors", "any", "offsets", "history"), None, {})
        if known.status_code == _UNKNOWN:
            raise WorkerError(
                f"The worker at {self.url} does not support dry runs, and would make the change, so no request "
                "was sent. To make the change, leave --dry-run out."
            )
        return self.request(method, *path, body=body, query={"dry_run": "true"})

    def understood(self, answer: object, form: type[Form]) -> Form:
        """*answer* as a value of *form*."""
        try:
            return msgspec.convert(answer, form)
        except msgspec.ValidationError as error:
            raise self._not_a_worker(str(error)) from error

    def _sent(
        self, method: str, path: tuple[str, ...], body: object, query: Query
    ) -> httpx.Response:
        if "" in path:
            kind = "worker" if path[:1] == _ADMIN else "connector"
            raise WorkerError(f"The name of the {kind} is empty. No request was sent.")
        url = "/".join((self.url, *map(segment, path)))
        content, headers = b"", dict[str, str]()
        if body is not None:
            content, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        try:
            return self._http.request(
                method, url, content=content, headers=headers, params=query or None
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            kind = NoWorkerError if _is_refused(error) else UnreachableError
            advice = _advice(error)
            raise kind(f"The worker at {self.url} cannot be reached: {error}. {advice}") from error
        except httpx.TimeoutException as error:
            raise WorkerError(
                f"The worker at {self.url} has not answered within {self._seconds:g} s. It may still carry out "
                "the request; check before you retry."
            ) from error
        except httpx.TransportError as error:
            raise WorkerError(
                f"The worker at {self.url} closed the connection before it answered: {str(error).rstrip('.')}. It "
                "may have carried out the request; check before you retry."
            ) from error

    def _refuse(self, answer: httpx.Response, path: tuple[str, ...]) -> NoReturn:
        body: Any = self._json(answer)
        message = body.get("message") if isinstance(body, dict) else None
        if not isinstance(message, str):
            raise self._not_a_worker(f"HTTP {answer.status_code} without a message")
        hint = self._hint(answer.status_code, message, path)
        kind = LoginError if answer.status_code == _UNAUTHORIZED else WorkerError
        raise kind(f"{message.rstrip('.')}. {hint}" if hint else message)

    def _hint(self, status: int, message: str, path: tuple[str, ...]) -> str | None:
        """Advice that the worker's own message does not give."""
        if status == _UNAUTHORIZED:
            return _LOGIN
        if status != _UNKNOWN:
            return None
        if message == _NO_SUCH_PATH and path[:1] == _ADMIN:
            return (
                f"The worker at {self.url} does not support this here: it is headrace's own, unknown to workers of Kafka Connect, and the "
                "worker's admin.listeners may have moved it. Choose the address with --url or HEADRACE_URL."
            )
        if message == _NO_SUCH_PATH:
            return (
                f"The worker at {self.url} does not support this: lag, history and undo are headrace's own. Or "
                "the address is wrong: choose another with --url or HEADRACE_URL."
            )
        return self._known(path[1]) if path[:1] == _CONNECTORS and len(path) > 1 else None

    def _known(self, wanted: str) -> str | None:
        """A sentence about the existing connectors, when *wanted* does not exist."""
        names = self.understood(self.get(*_CONNECTORS), list[str])
        return None if wanted in names else f"At {self.url} {known_names(names, wanted)}."

    def _json(self, answer: httpx.Response) -> object:
        try:
            return answer.json()
        except ValueError:
            if answer.status_code == _UNAUTHORIZED:
                # Kafka Connect's answer is plain text.
                raise LoginError(f"{answer.text.strip()} {_LOGIN}") from None
            raise self._not_a_worker(f"HTTP {answer.status_code}, which is not JSON") from None

    def _not_a_worker(self, what: str) -> WorkerError:
        return WorkerError(
            f"The server at {self.url} is not a worker of headrace or Kafka Connect: {what}. Choose the worker "
            "with --url or HEADRACE_URL."
        )
