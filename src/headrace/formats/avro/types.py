"""Avro's schema language: from its JSON to types whose names are resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from headrace.connect.errors import RecordError

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
CONFLUENT: Final = "io.confluent.connect.avro."
NAMED: Final = frozenset(("record", "enum", "fixed"))
_LEAST_BYTES = {"null": 0, "float": 4, "double": 8}
# Far more than any schema that people write, far less than one that is made to fill the memory.
_MOST_PARTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroType:
    """A type with everything that it is made of; *kind* is Avro's word for it.

    *name* is the full name of a record, enum or fixed. *properties* are the attributes that Avro itself
    does not know or that annotate, such as ``logicalType``. *items* are an array's elements or a map's
    values. *parts* counts the types that it is made of, *least_bytes* what a value takes at least.
    """

    kind: str
    name: str | None = None
    doc: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict[str, object])
    fields: Sequence[AvroField] = ()
    branches: Sequence[AvroType] = ()
    symbols: Sequence[str] = ()
    size: int = 0
    items: AvroType | None = None
    parts: int = 1
    least_bytes: int = 0

    @property
    def element(self) -> AvroType:
        """The elements of an array, or the values of a map."""
        if self.items is None:
            raise RuntimeError(f"a type of kind {self.kind} has no elements")
        return self.items

    @property
    def logical(self) -> str:
        """The logical type, or an empty string."""
        return str(self.properties.get("logicalType", "")).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroField:
    """A member of a record; *default* is JSON, ``None`` where there is none or it is null."""

    name: str
    type: AvroType
    doc: str | None = None
    default: object = None


class SchemaRefusedError(RecordError):
    """A schema that cannot be used; *why* is a sentence that does not say where the schema stands."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The Avro schema in the file's header cannot be used: {why}",
            advice="Write the file again with another schema, or leave it out of what is read.",
        )
        self.why = why


def parsed(text: bytes) -> AvroType:
    """The type that *text*, a schema as JSON, describes. Pure; called once per object.

    Raises :class:`SchemaRefusedError`, without a place, for what is no schema, and for types without end,
    which a column cannot hold.
    """
    try:
        return _Parser().type_of(json.loads(text), "")
    except RecursionError:
        raise refused("It is nested too deeply.") from None
    except ValueError as error:
        raise refused(f"It is not JSON ({error}).") from error


def refused(reason: str) -> SchemaRefusedError:
    """The error for a schema that cannot be used, without its place."""
    return SchemaRefusedError(reason)


def nullable_of(kind: AvroType) -> AvroType | None:
    """The other branch of a union of null and one type, or of one type alone; ``None`` for other types."""
    if kind.kind != "union":
        return None
    others = [each for each in kind.branches if each.kind != "null"]
    plain = len(kind.branches) == 1 or len(others) == len(kind.branches) - 1 == 1
    return others[0] if plain and others else None


def is_map_entry(kind: AvroType) -> bool:
    """Whether arrays of *kind* are how Confluent writes maps whose keys are no strings."""
    return kind.kind == "record" and (
        kind.name == f"{CONFLUENT}MapEntry"
        or kind.properties.get("connect.internal.type") == "MapEntry"
    )


def entry_fields(kind: AvroType) -> tuple[AvroType, AvroType]:
    """The types of key and value of a map entry."""
    found = {each.name: each.type for each in kind.fields}
    if set(found) != {"key", "value"}:
        raise refused("A map entry must have the fields key and value.")
    return found["key"], found["value"]


def branch_name(kind: AvroType) -> str:
    """What the field of a union's struct is called that holds values of *kind*."""
    return kind.name.rpartition(".")[2] if kind.name else kind.kind


class _Parser:
    def __init__(self) -> None:
        self._known = dict[str, AvroType | None]()

    def type_of(self, told: object, namespace: str) -> AvroType:
        if isinstance(told, str):
            return self._named(told, namespace)
        if isinstance(told, list):
            return self._union(cast("list[object]", told), namespace)
        if not isinstance(told, dict):
            raise refused(f"{told!r} is no type.")
        return self._described(cast("dict[str, Any]", told), namespace)

    def _described(self, told: dict[str, Any], namespace: str) -> AvroType:
        kind = told.get("type")
        if not isinstance(kind, str):
            return self.type_of(kind, namespace)
        kind = "record" if kind == "error" else kind
        if kind in NAMED:
            return self._definition(kind, told, namespace)
        if kind in ("array", "map"):
            return self._container(kind, told, namespace)
        return _primitive(kind, told) if kind in PRIMITIVES else self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return _primitive(name, {})
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self._known else name
        if full not in self._known:
            raise refused(f"The type {name!r} is not defined.")
        found = self._known[full]
        if found is None:
            # A column has one shape, and fastavro crashes the process on a value that is nested deeply.
            raise refused(
                f"The type {full!r} holds itself, so that its values have no fixed shape. As JSON text in a "
                "string they can be sent, and the file as it is in the format bytes."
            )
        return found

    def _union(self, told: list[object], namespace: str) -> AvroType:
        branches = [self.type_of(each, namespace) for each in told]
        if not branches or any(each.kind == "union" for each in branches):
            raise refused("A union is empty, or holds another one.")
        return AvroType(
            kind="union",
            branches=branches,
            parts=_parts(branches),
            least_bytes=1 + min(each.least_bytes for each in branches),
        )

    def _container(self, kind: str, told: dict[str, Any], namespace: str) -> AvroType:
        items = self.type_of(told.get("items" if kind == "array" else "values"), namespace)
        if kind == "array" and not items.least_bytes:
            # Their number could not be checked against anything.
            raise refused("An array's elements take no bytes.")
        return AvroType(
            kind=kind, properties=told, items=items, parts=_parts([items]), least_bytes=1
        )

    def _definition(self, kind: str, told: dict[str, Any], namespace: str) -> AvroType:
        name = _text(told, "name")
        given = told.get("namespace")
        if "." not in name:
            space = given if isinstance(given, str) else namespace
            name = f"{space}.{name}" if space else name
        if name in self._known:
            raise refused(f"The type {name!r} is defined twice.")
        self._known[name] = None
        made = self._record(name, told) if kind == "record" else _leaf(kind, name, told)
        self._known[name] = made
        return made

    def _record(self, name: str, told: dict[str, Any]) -> AvroType:
        space = name.rpartition(".")[0]
        fields = [self._field(each, space) for each in _list(told, "fields")]
        return AvroType(
            kind="record",
            name=name,
            doc=_doc(told),
            properties=told,
            fields=fields,
            parts=_parts([each.type for each in fields]),
            least_bytes=sum(each.type.least_bytes for each in fields),
        )

    def _field(self, told: object, namespace: str) -> AvroField:
        if not isinstance(told, dict):
            raise refused(f"{told!r} is no field.")
        attributes = cast("dict[str, Any]", told)
        return AvroField(
            name=_text(attributes, "name"),
            type=self.type_of(attributes.get("type"), namespace),
            doc=_doc(attributes),
            default=attributes.get("default"),
        )


def _primitive(kind: str, told: dict[str, Any]) -> AvroType:
    return AvroType(
        kind=kind, doc=_doc(told), properties=told, least_bytes=_LEAST_BYTES.get(kind, 1)
    )


def _leaf(kind: str, name: str, told: dict[str, Any]) -> AvroType:
    """An enum or a fixed."""
    if kind == "enum":
        symbols = _list(told, "symbols")
        if not all(isinstance(each, str) for each in symbols):
            raise refused(f"The symbols of {name!r} are no strings.")
        return AvroType(
            kind=kind,
            name=name,
            doc=_doc(told),
            properties=told,
            symbols=cast("list[str]", symbols),
            least_bytes=1,
        )
    size = told.get("size")
    if not isinstance(size, int) or size not in range(2**31):
        raise refused(f"The size of {name!r} is {size!r}.")
    return AvroType(
        kind=kind, name=name, doc=_doc(told), properties=told, size=size, least_bytes=size
    )


def _parts(inner: Sequence[AvroType]) -> int:
    parts = 1 + sum(each.parts for each in inner)
    if parts > _MOST_PARTS:
        raise refused(f"It is made of more than {_MOST_PARTS} types.")
    return parts


def _text(told: dict[str, Any], key: str) -> str:
    found = told.get(key)
    if not isinstance(found, str) or not found:
        raise refused(f"A definition has {found!r} as its {key}.")
    return found


def _list(told: dict[str, Any], key: str) -> list[object]:
    found = told.get(key)
    if not isinstance(found, list):
        raise refused(f"A definition has {found!r} as its {key}.")
    return cast("list[object]", found)


def _doc(told: dict[str, Any]) -> str | None:
    doc = told.get("doc")
    return doc if isinstance(doc, str) else None
