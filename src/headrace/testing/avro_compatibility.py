"""Whether one Avro schema reads what another one wrote: the rules of Avro's schema resolution, in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from fastavro.schema import expand_schema

_PROMOTED: Mapping[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def reads(reader: object, writer: object) -> bool:
    """Whether *reader* reads data of *writer*: the compatibility that registries call BACKWARD.

    Aliases are not looked at. Pure; raises what fastavro raises for what is no schema.
    """
    return expanded_reads(expand_schema(cast("Any", reader)), expand_schema(cast("Any", writer)))


def expanded_reads(reader: Any, writer: Any) -> bool:  # noqa: ANN401
    """The same of schemas in which each name of a type has been replaced by the type."""
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


def _kind(told: Any) -> str:  # noqa: ANN401
    kind = told["type"] if isinstance(told, dict) else told
    return kind if isinstance(kind, str) else _kind(kind)
