"""What Cast is told: which fields become which types, or which type the whole operand becomes; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.connect.schema import SchemaType
from headrace.transforms.list_rules import PAIR, parts_of

TARGETS: Final[Mapping[str, SchemaType]] = {
    "INT8": SchemaType.INT8,
    "INT16": SchemaType.INT16,
    "INT32": SchemaType.INT32,
    "INT64": SchemaType.INT64,
    "FLOAT32": SchemaType.FLOAT32,
    "FLOAT64": SchemaType.FLOAT64,
    "BOOLEAN": SchemaType.BOOLEAN,
    "STRING": SchemaType.STRING,
}
"""What a value can be cast to, by Java's names of the types."""

_UNCASTABLE = ("BYTES", "ARRAY", "MAP", "STRUCT")


@dataclass(frozen=True, slots=True, kw_only=True)
class CastSpec:
    """The types of *fields*; or *whole*, the type of all of the operand."""

    fields: Mapping[str, SchemaType] = field(default_factory=dict[str, SchemaType])
    whole: SchemaType | None = None


def parsed_spec(items: Sequence[str]) -> CastSpec:
    """The meaning of ``spec``; raises ``ValueError`` with what is wrong with it."""
    if not items:
        raise ValueError("Must specify at least one field to cast.")
    pairs = [_parts(item, items) for item in items]
    types = [_target(parts[-1]) for parts in pairs]
    if all(len(parts) == PAIR for parts in pairs):
        names = [parts[0].strip() for parts in pairs]
        return CastSpec(fields=dict(zip(names, types, strict=True)))
    if len(items) > 1:
        raise ValueError(
            "Cast transformations that specify a type to cast the entire value to may only specify "
            "a single cast in their spec"
        )
    return CastSpec(whole=types[0])


def _parts(item: str, items: Sequence[str]) -> list[str]:
    parts = parts_of(item)
    if len(parts) > PAIR:
        # Kafka Connect names the key of another transformation here.
        told = f"Invalid value [{', '.join(items)}] for configuration spec"
        raise ValueError(f"{told}: Invalid mapping of a field to a type: {item}")
    return parts


def _target(name: str) -> SchemaType:
    wanted = name.strip().upper()
    if wanted in TARGETS:
        return TARGETS[wanted]
    supported = ", ".join(TARGETS)
    if wanted in _UNCASTABLE:
        raise ValueError(
            f"Cast transformation does not support casting to {wanted}; "
            f"supported types are [{supported}]"
        )
    raise ValueError(
        f"Invalid type found in casting spec: {name.strip()}; supported types are [{supported}]"
    )
