"""Types of Spark SQL as types of Kafka Connect: which of them have one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql import types as t

_PLAIN: Final = frozenset(
    [
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "boolean",
        "string",
        "binary",
        "date",
        "time",
        "timestamp",
        "timestamp_ntz",
        "void",
    ]
)


def strange_fields(kind: t.DataType, name: str) -> Iterator[tuple[str, str]]:
    """Where in *kind*, which is called *name*, there are types that Kafka Connect has no equal of, and which. Pure."""
    if isinstance(kind, t.StructType):
        for each in kind.fields:
            yield from strange_fields(each.dataType, f"{name}.{each.name}" if name else each.name)
    elif isinstance(kind, t.ArrayType):
        yield from strange_fields(kind.elementType, name)
    elif isinstance(kind, t.MapType):
        yield from strange_fields(kind.keyType, name)
        yield from strange_fields(kind.valueType, name)
    elif not _is_plain(kind):
        yield name, kind.simpleString()


def _is_plain(kind: t.DataType) -> bool:
    if isinstance(kind, t.DecimalType | t.CharType | t.VarcharType):
        return True
    # A time has its precision behind its name, text its collation.
    return kind.simpleString().partition("(")[0].partition(" ")[0] in _PLAIN
