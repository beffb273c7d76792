"""A client for schema registries with Confluent's protocol: registers schemas, finds their ids."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from headrace.connect.errors import RecordError, RetriableError, TaskFailedError

_TYPE = "application/vnd.schemaregistry.v1+json"
_AWAY = frozenset((408, 429, 500, 502, 503, 504))
_FORBIDDEN = frozenset((401, 403))
_CONFLICT = 409
_OK = 200
_SUBJECT_MISSING, _VERSION_MISSING, _SCHEMA_MISSING = 40401, 40402, 40403
# Exceptions of connecting, sending and receiving when the other side is away, slow, or closes the connection.
_BROKEN = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """The addresses, credentials and time-outs for a registry. *authorization* is a header's value, or empty."""

    urls: Sequence[str]
    authorization: str = field(default="", repr=False)
    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    retries: int = 3
    first_wait_seconds: float = 0.1
    longest_wait_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema's reference to the type *name*, which is in that *version* of another *subject*."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A *schema* as JSON text, and references to the types that it names but does not contain."""

    schema: str
    references: Sequence[SchemaReference] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A version of a subject: its *schema*, and the *id* of that."""

    id: int
    version: int
    schema: SchemaText


class RegistryClient:
    """Tries one URL after the other, and all of them again after a pause. Used by one thread; keeps no connection open.

    Every method raises :class:`~headrace.connect.errors.RetriableError` when no URL answered,
    :class:`~headrace.connect.errors.TaskFailedError` when the registry refuses access or its answer is
    invalid, and :class:`~headrace.connect.errors.RecordError`, with row 0, when it refuses the schema.
    """

    def __init__(
        self, access: RegistryAccess, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._access = access
        self._urls = [urlsplit(url) for url in access.urls]
        self._sleep = sleep

    def register(self, subject: str, schema: str, *, normalize: bool = False) -> int:
        """The id of *schema*, which is a version of *subject* from now on."""
        path = f"/subjects/{quote(subject, safe='')}/versions{_normalized(normalize)}"
        return _number(self._requested("POST", path, subject, {"schema": schema}), "id")

    def find(self, subject: str, schema: str, *, normalize: bool = False) -> int:
        """The id of *schema*, which must be a version of *subject* already."""
        path = f"/subjects/{quote(subject, safe='')}{_normalized(normalize)}"
        return _number(self._requested("POST", path, subject, {"schema": schema}), "id")

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest version of *subject*."""
        return self.version(subject, "latest")

    def version(self, subject: str, version: int | str) -> RegisteredSchema:
        """One version of *subject*, by its number."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        answer = self._requested("GET", path, subject)
        return RegisteredSchema(
            id=_number(answer, "id"),
            version=_number(answer, "version"),
            schema=_schema_text(answer),
        )

    def schema(self, schema_id: int) -> SchemaText:
        """The schema with that id."""
        path = f"/schemas/ids/{schema_id}"
        return _schema_text(self._requested("GET", path, f"with the id {schema_id}"))

    def _requested(
        self, method: str, path: str, subject: str, body: object = None
    ) -> Mapping[str, Any]:
        reasons = list[str]()
        for wait in self._waits():
            if wait:
                self._sleep(wait)
            reasons.clear()
            for url in list(self._urls):
                try:
                    status, answer = self._exchange(url, method, path, body)
                except _BROKEN as error:
                    reasons.append(f"{_shown(url)}: {str(error) or type(error).__name__}")
                    continue
                if status not in _AWAY:
                    self._prefer(url)
                    return _accepted(status, answer, subject, _shown(url))
                reasons.append(f"{_shown(url)} answered {status} {_error_text(answer)}")
        raise RetriableError(
            f"The schema registry does not answer ({'; '.join(reasons)}). The request is sent again; if this "
            "persists, check schema.registry.url."
        )

    def _waits(self) -> Iterator[float]:
        yield 0.0
        for attempt in range(self._access.retries):
            wait = self._access.first_wait_seconds * 2**attempt
            yield min(wait, self._access.longest_wait_seconds)

    def _prefer(self, url: SplitResult) -> None:
        """Try *url*, which has answered, first the next time."""
        self._urls.sort(key=lambda each: each != url)

    def _exchange(
        self, url: SplitResult, method: str, path: str, body: object
    ) -> tuple[int, bytes]:
        connection = self._connection(url)
        try:
            connection.connect()
            connection.sock.settimeout(self._access.read_seconds)
            content = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{url.path.rstrip('/')}{path}", content, self._headers(url))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        host, timeout = url.hostname or "", self._access.connect_seconds
        if url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, url.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, url.port, timeout=timeout)

    def _headers(self, url: SplitResult) -> dict[str, str]:
        headers = {"Content-Type": _TYPE, "Accept": f"{_TYPE}, application/json"}
        authorization = self._access.authorization
        if url.username is not None:
            user_info = f"{unquote(url.username)}:{unquote(url.password or '')}"
            authorization = authorization or basic_authorization(user_info)
        return {**headers, "Authorization": authorization} if authorization else headers


def basic_authorization(user_info: str) -> str:
    """The header's value for ``user:password``."""
    return f"Basic {base64.b64encode(user_info.encode()).decode()}"


def _accepted(status: int, answer: bytes, subject: str, url: str) -> Mapping[str, Any]:
    if status == _OK:
        return _parsed(answer, url)
    if status in _FORBIDDEN:
        raise TaskFailedError(
            f"The schema registry {url} refuses access ({status} {_error_text(answer)}). Check "
            "basic.auth.user.info and the permissions of that user."
        )
    raise _refusal(status, answer, subject, url)


def _refusal(status: int, answer: bytes, subject: str, url: str) -> Exception:
    code = _code(answer)
    if status == _CONFLICT:
        reason = f"The schema is not compatible with the versions of the subject {subject}"
        advice = (
            "Change the schema in a compatible way, change the subject's compatibility, or send to another "
            "topic."
        )
    elif code in (_SUBJECT_MISSING, _VERSION_MISSING):
        reason = f"The schema registry has no subject {subject}"
        advice = "Register its schema, or set auto.register.schemas=true."
    elif code == _SCHEMA_MISSING:
        reason = f"The subject {subject} does not have this schema"
        advice = "Register it, or set auto.register.schemas=true or use.latest.version=true."
    elif status in (404, 405):
        return TaskFailedError(
            f"{url} answers {status}, so it is not a schema registry. Check schema.registry.url."
        )
    else:
        reason = f"The schema registry refused the schema of the subject {subject}"
        advice = "Check the schema and the registry's log."
    return RecordError(f"{reason} ({status} {_error_text(answer)}).", row=0, advice=advice)


def _parsed(answer: bytes, url: str) -> Mapping[str, Any]:
    try:
        found = json.loads(answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise TaskFailedError(
            f"{url} did not answer as a schema registry does. Check schema.registry.url."
        )
    return cast("dict[str, Any]", found)


def _number(answer: Mapping[str, Any], key: str) -> int:
    if not isinstance(answer.get(key), int):
        raise TaskFailedError(
            f"The schema registry's answer has no {key}. Check schema.registry.url."
        )
    return answer[key]


def _schema_text(answer: Mapping[str, Any]) -> SchemaText:
    if answer.get("schemaType", "AVRO") != "AVRO" or not isinstance(answer.get("schema"), str):
        raise TaskFailedError("The schema registry's answer has no Avro schema.")
    try:
        references = [
            SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in answer.get("references") or ()
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise TaskFailedError(
            f"The schema registry's answer has invalid references: {answer['references']!r}."
        ) from error
    return SchemaText(answer["schema"], references)


def _code(answer: bytes) -> object:
    try:
        found = json.loads(answer)
    except ValueError:
        return None
    return cast("dict[str, object]", found).get("error_code") if isinstance(found, dict) else None


def _error_text(answer: bytes) -> str:
    """The registry's error message, shortened."""
    try:
        found = json.loads(answer)
        text = str(cast("dict[str, object]", found)["message"])
    except (ValueError, KeyError, TypeError):
        text = answer.decode(errors="replace")
    most = 300
    return " ".join(text.split())[:most]


def _normalized(normalize: bool) -> str:  # noqa: FBT001 (a query's only word)
    return "?normalize=true" if normalize else ""


def _shown(url: SplitResult) -> str:
    """*url* without its secrets."""
    return urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment=""))
