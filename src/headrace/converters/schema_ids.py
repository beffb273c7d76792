"""The ids of schemas in a registry: requested once, then cached; schemas that refer to others."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Generic, TypeVar, cast

from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema

from headrace.connect.errors import RecordError
from headrace.converters.avro_schema import AvroJson
from headrace.converters.registry_client import RegistryClient, SchemaReference, SchemaText


def referred_schemas(client: RegistryClient, schema: SchemaText, name: str) -> list[object]:
    """All schemas that *schema*, which is called *name*, refers to, as JSON: each after those that it refers to itself.

    Of several versions under one name the first one counts, as in Confluent's client. Raises what *client*
    does, :class:`~headrace.connect.errors.RecordError` for a reference to a schema that does not exist, and
    ``ValueError`` for invalid JSON.
    """
    return list(_referred(client, schema.references, name, set()))


def _referred(
    client: RegistryClient, references: Sequence[SchemaReference], name: str, seen: set[str]
) -> Iterator[object]:
    for each in references:
        if each.name in seen:
            continue
        seen.add(each.name)
        found = _fetched(client, each, name)
        yield from _referred(
            client, found.references, f"{each.subject}, version {each.version}", seen
        )
        yield json.loads(found.schema)


def _fetched(client: RegistryClient, reference: SchemaReference, name: str) -> SchemaText:
    try:
        return client.version(reference.subject, reference.version).schema
    except RecordError as error:
        raise RecordError(
            f"The schema {name}, refers to {reference.name} as version {reference.version} of the subject "
            f"{reference.subject}, which cannot be fetched: {error.reason}",
            row=0,
            advice="Register a version whose references exist, or that contains all of its types.",
        ) from error


UNFIT: Final = (SchemaParseException, UnknownType, KeyError, TypeError, ValueError, RecursionError)
"""The exceptions for a schema that cannot be understood."""


def layout_difference(ours: object, theirs: object, referred: Sequence[object] = ()) -> str | None:
    """Where data of *ours* has other bytes than data of *theirs*, in words; ``None`` if they are the same.

    *referred* are schemas with the types that *theirs* only names, each after those that it needs itself.

    Names of types, docs, defaults and annotations do not count: they are not in the bytes. Fields must
    have the same names, because otherwise one would be read as another. A logical type that only *theirs* has
    is accepted: it only gives the number a meaning. Pure; raises one of ``UNFIT`` for an invalid schema.
    """
    return _difference(expand_schema(cast("Any", ours)), _expanded(theirs, referred), "")


def _expanded(schema: object, referred: Sequence[object]) -> Any:  # noqa: ANN401
    types: dict[str, Any] = {}
    for each in referred:
        before = dict(types)
        parse_schema(cast("Any", each), named_schemas=types, expand=True)
        twice = [name for name, known in before.items() if types[name] != known]
        if twice:
            raise SchemaParseException(f"{twice[0]} is defined twice by what it refers to")
    return parse_schema(cast("Any", schema), named_schemas=types, expand=True)


def _difference(ours: Any, theirs: Any, place: str) -> str | None:  # noqa: ANN401
    kinds = _kind(ours), _kind(theirs)
    where = place or "the value"
    if kinds[0] != kinds[1]:
        return f"{where} is written as {kinds[0]}, but is {kinds[1]} there"
    if kinds[0] == "union":
        return _of_union(ours, theirs, place)
    if kinds[0] == "record":
        return _of_record(ours, theirs, place)
    if kinds[0] in ("array", "map"):
        key = "items" if kinds[0] == "array" else "values"
        return _difference(ours[key], theirs[key], f"{place}[]")
    return _of_leaf(ours, theirs, where)


def _of_leaf(ours: Any, theirs: Any, where: str) -> str | None:  # noqa: ANN401
    for key in ("symbols", "size"):
        if _property(ours, key) != _property(theirs, key):
            return f"{where} has other {key} there"
    logical = _property(ours, "logicalType")
    if logical and logical != _property(theirs, "logicalType"):
        return f"{where} is of the logical type {logical}, but not there"
    if logical == "decimal" and (_property(ours, "scale") or 0) != (
        _property(theirs, "scale") or 0
    ):
        return f"{where} has another scale there"
    return None


def _of_union(ours: list[Any], theirs: list[Any], place: str) -> str | None:
    if len(ours) != len(theirs):
        return f"{place or 'the value'} is one of {len(ours)} types, but of {len(theirs)} there"
    pairs = zip(ours, theirs, strict=True)
    return next(filter(None, (_difference(one, other, place) for one, other in pairs)), None)


def _of_record(ours: dict[str, Any], theirs: dict[str, Any], place: str) -> str | None:
    names = [[each["name"] for each in schema["fields"]] for schema in (ours, theirs)]
    if names[0] != names[1]:
        where = f" of {place}" if place else ""
        return f"the fields{where} are {', '.join(names[0])}, but {', '.join(names[1])} there"
    pairs = zip(ours["fields"], theirs["fields"], strict=True)
    found = (
        _difference(one["type"], other["type"], f"{place}.{one['name']}".lstrip("."))
        for one, other in pairs
    )
    return next(filter(None, found), None)


def _kind(schema: Any) -> str:  # noqa: ANN401
    if isinstance(schema, list):
        return "union"
    kind = schema["type"] if isinstance(schema, dict) else schema
    return kind if isinstance(kind, str) else _kind(kind)


def _property(schema: Any, key: str) -> object:  # noqa: ANN401
    return schema.get(key) if isinstance(schema, dict) else None


def cannot_be_read(error: Exception) -> RecordError:
    """The error for an invalid schema from the registry."""
    return RecordError(
        f"The schema in the registry cannot be understood: {type(error).__name__}: {error}",
        row=0,
        advice="Register another version of it.",
    )


REFUSED_SECONDS: Final = 5.0
"""How long a refusal is remembered: otherwise each skipped record would be a request of its own."""

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Bounded(Generic[_Key, _Value]):
    """A mapping that drops its least recently used entry when it is full."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """The value of *key*, if it is known."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, key: _Key, value: _Value) -> _Value:
        """Remember *value*, and return it."""
        self._known[key] = value
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return value


class Origin(Enum):
    """How the id of a schema is found."""

    REGISTERED = auto()
    FOUND = auto()
    LATEST = auto()
    GIVEN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdChoice:
    """How ids are found; *given* is the id to use with ``Origin.GIVEN``."""

    origin: Origin = Origin.REGISTERED
    normalize: bool = False
    given: int = -1


class SchemaIds:
    """Finds and caches the ids of schemas by subject. Made in the slot, used by its thread."""

    def __init__(
        self,
        client: RegistryClient,
        choice: IdChoice,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._choice = choice
        self._clock = clock
        self._known: Bounded[tuple[str, str], int] = Bounded(most)
        self._refused: Bounded[tuple[str, str], tuple[float, RecordError]] = Bounded(most)

    def id_of(self, subject: str, avro: AvroJson, text: str) -> int:
        """The id of the schema *avro*, which is *text*, under *subject*; raises what :class:`RegistryClient` does.

        Sends a request the first time only. Raises :class:`~headrace.connect.errors.RecordError` when
        the schema that is to be used does not describe the bytes.
        """
        known = self._known.get((subject, text))
        if known is not None:
            return known
        refused = self._refused.get((subject, text))
        if refused is not None and self._clock() < refused[0]:
            raise RecordError(refused[1].reason, row=0, advice=refused[1].advice)
        try:
            return self._known.put((subject, text), self._requested(subject, avro, text))
        except RecordError as error:
            self._refused.put((subject, text), (self._clock() + REFUSED_SECONDS, error))
            raise

    def _requested(self, subject: str, avro: AvroJson, text: str) -> int:
        choice = self._choice
        if choice.origin is Origin.REGISTERED:
            return self._client.register(subject, text, normalize=choice.normalize)
        if choice.origin is Origin.FOUND:
            return self._client.find(subject, text, normalize=choice.normalize)
        if choice.origin is Origin.GIVEN:
            self._check(avro, self._client.schema(choice.given), f"with the id {choice.given}")
            return choice.given
        latest = self._client.latest(subject)
        self._check(avro, latest.schema, f"{subject}, version {latest.version}")
        return latest.id

    def _check(self, ours: AvroJson, theirs: SchemaText, name: str) -> None:
        try:
            referred = referred_schemas(self._client, theirs, name)
            difference = layout_difference(ours, json.loads(theirs.schema), referred)
        except UNFIT as error:
            raise cannot_be_read(error) from error
        if difference:
            raise RecordError(
                f"The values cannot be written with the schema {name}: {difference}.",
                row=0,
                advice="Register a version that fits them, or set auto.register.schemas=true.",
            )
