"""Whether bytes that were laid out by one Avro schema can be read by another one as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema

from headrace.connect.errors import RecordError

UNFIT: Final = (SchemaParseException, UnknownType, KeyError, TypeError, ValueError, RecursionError)
"""What a schema that cannot be understood raises."""


def layout_difference(ours: object, theirs: object, referred: Sequence[object] = ()) -> str | None:
    """Where the bytes of *ours* would not be what *theirs* says, in words; ``None`` if they are the same.

    *referred* are schemas that hold types which *theirs* only names, each behind those that it needs itself.

    Names of types, docs, defaults and annotations do not count: they are not in the bytes. Fields must
    have the same names, because else one would be read as another. A logical type that only *theirs* has
    is taken as what the number was all along. Pure; raises one of ``UNFIT`` for what is no schema.
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
        return f"{where} is written as {kinds[0]}, and {kinds[1]} there"
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
        if _told(ours, key) != _told(theirs, key):
            return f"{where} has other {key} there"
    logical = _told(ours, "logicalType")
    if logical and logical != _told(theirs, "logicalType"):
        return f"{where} is of the logical type {logical}, and not there"
    if logical == "decimal" and (_told(ours, "scale") or 0) != (_told(theirs, "scale") or 0):
        return f"{where} has another scale there"
    return None


def _of_union(ours: list[Any], theirs: list[Any], place: str) -> str | None:
    if len(ours) != len(theirs):
        return f"{place or 'the value'} is one of {len(ours)} types, and of {len(theirs)} there"
    pairs = zip(ours, theirs, strict=True)
    return next(filter(None, (_difference(one, other, place) for one, other in pairs)), None)


def _of_record(ours: dict[str, Any], theirs: dict[str, Any], place: str) -> str | None:
    names = [[each["name"] for each in told["fields"]] for told in (ours, theirs)]
    if names[0] != names[1]:
        where = f" of {place}" if place else ""
        return f"the fields{where} are {', '.join(names[0])}, and {', '.join(names[1])} there"
    pairs = zip(ours["fields"], theirs["fields"], strict=True)
    found = (
        _difference(one["type"], other["type"], f"{place}.{one['name']}".lstrip("."))
        for one, other in pairs
    )
    return next(filter(None, found), None)


def _kind(told: Any) -> str:  # noqa: ANN401
    if isinstance(told, list):
        return "union"
    kind = told["type"] if isinstance(told, dict) else told
    return kind if isinstance(kind, str) else _kind(kind)


def _told(told: Any, key: str) -> object:  # noqa: ANN401
    return told.get(key) if isinstance(told, dict) else None


def cannot_be_read(error: Exception) -> RecordError:
    """The error for a schema from the registry that is none."""
    return RecordError(
        f"The schema in the registry cannot be understood: {type(error).__name__}: {error}",
        row=0,
        advice="Register another version of it.",
    )
