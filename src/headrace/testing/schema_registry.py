"""A small schema registry for tests: Confluent's protocol over HTTP on loopback, with bad moments."""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import unquote, urlsplit

from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema

_PROMOTED: Mapping[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def reads(reader: object, writer: object) -> bool:
    """Whether *reader* reads data of *writer*: the compatibility that registries call BACKWARD.

    Aliases are ignored. Pure; raises what fastavro raises for what is not a schema.
    """
    return expanded_reads(expand_schema(cast("Any", reader)), expand_schema(cast("Any", writer)))


def expanded_reads(reader: Any, writer: Any) -> bool:  # noqa: ANN401
    """As :func:`reads`, for schemas in which each name of a type has been replaced by the type."""
    if isinstance(writer, list):
        return all(expanded_reads(reader, each) for each in cast("list[Any]", writer))
    if isinstance(reader, list):
        return any(expanded_reads(each, writer) for each in cast("list[Any]", reader))
    ours, theirs = _kind(reader), _kind(writer)
    if ours != theirs:
        return ours in _PROMOTED.get(theirs, ())
    if ours in ("array", "map"):
        key = "items" if ours == "array" else "values"
        return expanded_reads(reader[key], writer[key])
    return ours not in ("record", "enum", "fixed") or _reads_named(ours, reader, writer)


def _reads_named(kind: str, reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    if reader["name"].rpartition(".")[2] != writer["name"].rpartition(".")[2]:
        return False
    if kind == "record":
        return _reads_fields(reader, writer)
    if kind == "fixed":
        return reader["size"] == writer["size"]
    return "default" in reader or set(reader["symbols"]).issuperset(writer["symbols"])


def _reads_fields(reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    written = {each["name"]: each["type"] for each in writer["fields"]}
    return all(
        expanded_reads(each["type"], written[each["name"]])
        if each["name"] in written
        else "default" in each
        for each in reader["fields"]
    )


def _kind(schema: Any) -> str:  # noqa: ANN401
    kind = schema["type"] if isinstance(schema, dict) else schema
    return kind if isinstance(kind, str) else _kind(kind)


References = Sequence[Mapping[str, Any]]
"""What a schema refers to, each with ``name``, ``subject`` and ``version``."""

_UNREADABLE = (SchemaParseException, UnknownType, ValueError, KeyError, TypeError)


class RegistryRefusal(Exception):  # noqa: N818 (an answer with a status, not a failure)
    """An answer that is an error: *status* of HTTP and the registry's own *code*."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class _Reference:
    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class _Kept:
    text: str
    references: tuple[_Reference, ...]

    def answer(self) -> Mapping[str, object]:
        """The schema in the form of registries' answers: without ``references`` where it has none."""
        references = {"references": [asdict(each) for each in self.references]}
        return {"schema": self.text, **(references if self.references else {})}


@dataclass
class RegistryStore:
    """Subjects and schemas in memory. Not safe for several threads at once.

    *compatibility* is BACKWARD (a new version reads what the newest one wrote) or NONE, for all subjects;
    *levels* overrides it for single ones.
    """

    compatibility: str = "BACKWARD"
    levels: dict[str, str] = field(default_factory=dict[str, str])
    _ids: dict[_Kept, int] = field(default_factory=dict[_Kept, int])
    _subjects: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def register(self, subject: str, schema: str, references: References = ()) -> int:
        """The id of *schema*, a version of *subject* from now on; raises :class:`RegistryRefusal`."""
        kept = self._kept(schema, references)
        versions = self._subjects.get(subject, [])
        if self._ids.get(kept) in versions:
            return self._ids[kept]
        if versions and self.level(subject) != "NONE" and not self._fits(kept, versions[-1]):
            raise RegistryRefusal(
                409, 409, "Schema being registered is incompatible with an earlier schema"
            )
        found = self._ids.setdefault(kept, len(self._ids) + 1)
        self._subjects.setdefault(subject, []).append(found)
        return found

    def found(self, subject: str, schema: str, references: References = ()) -> Mapping[str, object]:
        """The version of *subject* that *schema* is; raises :class:`RegistryRefusal`."""
        versions, kept = self._versions(subject), self._kept(schema, references)
        if self._ids.get(kept) not in versions:
            raise RegistryRefusal(404, 40403, "Schema not found")
        return self.version(subject, str(versions.index(self._ids[kept]) + 1))

    def version(self, subject: str, version: str) -> Mapping[str, object]:
        """A version of *subject*, ``latest`` for the newest; raises :class:`RegistryRefusal`."""
        versions = self._versions(subject)
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise RegistryRefusal(404, 40402, f"Version {version} not found.")
        found = versions[number - 1]
        return {"subject": subject, "version": number, "id": found, **self.schema(found)}

    def versions(self, subject: str) -> list[int]:
        """The numbers of *subject*'s versions; raises :class:`RegistryRefusal`."""
        return list(range(1, len(self._versions(subject)) + 1))

    def schema(self, schema_id: int) -> Mapping[str, object]:
        """The schema with that id as JSON text, and its references; raises :class:`RegistryRefusal`."""
        return self._by_id(schema_id).answer()

    def subjects(self) -> list[str]:
        """The names of all subjects."""
        return sorted(self._subjects)

    def level(self, subject: str) -> str:
        """The compatibility of *subject*."""
        return self.levels.get(subject, self.compatibility)

    def _versions(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise RegistryRefusal(404, 40401, f"Subject '{subject}' not found.")
        return self._subjects[subject]

    def _by_id(self, schema_id: int) -> _Kept:
        for kept, known in self._ids.items():
            if known == schema_id:
                return kept
        raise RegistryRefusal(404, 40403, f"Schema {schema_id} not found")

    def _fits(self, kept: _Kept, newest: int) -> bool:
        return expanded_reads(self._expanded(kept), self._expanded(self._by_id(newest)))

    def _kept(self, schema: str, references: References) -> _Kept:
        """*schema* as normalised text, which is the same for equal schemas; checks that it is a schema."""
        try:
            parsed: Any = json.loads(schema)
            text = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)
            kept = _Kept(text, tuple(_Reference(**each) for each in references))
            self._expanded(kept)
        except _UNREADABLE as error:
            raise RegistryRefusal(422, 42201, f"Invalid schema: {error}") from error
        return kept

    def _expanded(self, kept: _Kept, types: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        known: dict[str, Any] = {} if types is None else types
        for each in kept.references:
            self._expanded(self._referred(each), known)
        return parse_schema(json.loads(kept.text), named_schemas=known, expand=True)

    def _referred(self, reference: _Reference) -> _Kept:
        versions = self._subjects.get(reference.subject, [])
        if not 1 <= reference.version <= len(versions):
            raise RegistryRefusal(
                422,
                42201,
                f'No schema reference found for subject "{reference.subject}" and version '
                f"{reference.version}",
            )
        return self._by_id(versions[reference.version - 1])


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
        """What happens to the next requests, one entry for each: a status, or a bad moment."""
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
        """The address to configure as ``schema.registry.url``."""
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
        """Log nothing."""

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
                sent = str(body.get("schema", "")), body.get("references") or ()
                if versions:
                    return {"id": store.register(subject, *sent)}
                return store.found(subject, *sent)
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
