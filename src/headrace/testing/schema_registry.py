"""A small schema registry for tests: Confluent's protocol over HTTP on loopback, with bad moments."""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Mapping
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import unquote, urlsplit

from headrace.testing.registry_store import References, RegistryRefusal, RegistryStore

_LONGEST_HANG = 60.0
_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class BadMoment(Enum):
    """What may happen to a request in place of its answer."""

    CUT = auto()
    """The connection ends without an answer."""
    NONSENSE = auto()
    """The answer is a page for people, as of a proxy."""
    HANG = auto()
    """No answer comes until the registry is closed."""


class SchemaRegistry:
    """A registry on a port of its own; a context manager. Its threads end with it.

    It keeps Avro schemas, with references to others, checks BACKWARD compatibility against the newest
    version, and answers 40401, 40402, 40403 and 409 as Confluent's does.
    *user_info* (``user:password``) makes it ask for basic authentication.
    """

    def __init__(self, *, user_info: str = "", compatibility: str = "BACKWARD") -> None:
        self.store = RegistryStore(compatibility=compatibility)
        self.requests: list[str] = []
        """``METHOD path`` of each request so far, those with bad moments included."""
        self.bodies: list[Mapping[str, Any]] = []
        """What was sent with each request; empty for those without a body."""
        self.moments: deque[int | BadMoment] = deque()
        """What happens to the next requests, one each: a status, or a bad moment."""
        self.expected = f"Basic {base64.b64encode(user_info.encode()).decode()}"
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self._asks = bool(user_info)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.registry = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="schema-registry", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def register(self, subject: str, schema: object, references: References = ()) -> int:
        """Register *schema* without a request, to arrange a test; its id."""
        with self.lock:
            return self.store.register(subject, json.dumps(schema), references)

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401
        """The schema with that id, as JSON."""
        with self.lock:
            return json.loads(str(self.store.schema(schema_id)["schema"]))

    def admits(self, authorization: str | None) -> bool:
        """Whether a request with this header may be answered."""
        return not self._asks or authorization == self.expected


class _Server(ThreadingHTTPServer):
    registry: SchemaRegistry
    daemon_threads = False


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
        """Say nothing."""

    @property
    def _registry(self) -> SchemaRegistry:
        return cast("_Server", self.server).registry

    def _answer(self) -> None:
        registry = self._registry
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        with registry.lock:
            registry.requests.append(f"{self.command} {self.path}")
            registry.bodies.append(body)
            moment = registry.moments.popleft() if registry.moments else None
        if moment is None:
            self._send(*self._answered(body))
        elif isinstance(moment, int):
            self._send(moment, {"error_code": moment * 100 + 1, "message": "a bad moment"})
        elif moment is BadMoment.NONSENSE:
            self._send(200, "<html>Welcome</html>")
        elif moment is BadMoment.HANG:
            registry.closing.wait(_LONGEST_HANG)

    def _answered(self, body: Mapping[str, Any]) -> tuple[int, object]:
        registry = self._registry
        try:
            if not registry.admits(self.headers.get("Authorization")):
                raise RegistryRefusal(401, 40101, "Unauthorized")
            with registry.lock:
                return 200, self._found(registry.store, body)
        except RegistryRefusal as refusal:
            return refusal.status, {"error_code": refusal.code, "message": str(refusal)}

    def _found(self, store: RegistryStore, body: Mapping[str, Any]) -> object:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        match self.command, parts:
            case "POST", ["subjects", subject, *versions] if versions in ([], ["versions"]):
                asked = str(body.get("schema", "")), body.get("references") or ()
                if versions:
                    return {"id": store.register(subject, *asked)}
                return store.found(subject, *asked)
            case "PUT", ["config", *subject]:
                return _configured(store, subject, str(body["compatibility"]))
            case "GET", _:
                return _looked_up(store, parts)
            case _:
                raise _no_page()

    def _send(self, status: int, answer: object) -> None:
        content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _configured(store: RegistryStore, subject: list[str], level: str) -> Mapping[str, str]:
    if subject:
        store.levels[subject[0]] = level
    else:
        store.compatibility = level
    return {"compatibility": level}


def _looked_up(store: RegistryStore, parts: list[str]) -> object:
    match parts:
        case ["subjects"]:
            return store.subjects()
        case ["subjects", subject, "versions"]:
            return store.versions(subject)
        case ["subjects", subject, "versions", version]:
            return store.version(subject, version)
        case ["schemas", "ids", schema_id]:
            return store.schema(int(schema_id))
        case _:
            raise _no_page()


def _no_page() -> RegistryRefusal:
    return RegistryRefusal(404, 404, "HTTP 404 Not Found")
