"""What docs/compatibility.md says to be different in transformations, each by its name and with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headrace.connect.schema import DATE, TIME, TIMESTAMP, Schema, SchemaType, decimal
from judges.drawn_records import Drawn

Config = Mapping[str, str]
_LOGICAL = (DATE.name, TIME.name, TIMESTAMP.name, decimal(0).name)


def is_known(name: str, config: Config, rows: Sequence[Drawn]) -> bool:
    """Whether the transformation *name* is known to do something else with *rows*.

    Decimals without schema, which are numbers of JSON with many digits, are cast and come to the top as the
    doubles do that they are in Kafka Connect, where none of its own decimals does.
    """
    kind = name.rpartition(".")[2].partition("$")[0]
    schema = rows[0].value.schema
    if schema is None:
        return kind in {"Cast", "Flatten"} and decimal(0).name in repr(rows[0].value.of)
    if kind != "Flatten" and _has_structs_by_default(schema, rows):
        return True
    differs = _KNOWN.get(kind)
    return differs is not None and differs(config, schema)


def _has_structs_by_default(schema: Schema, rows: Sequence[Drawn]) -> bool:
    """The schema of a default that is a struct is not the field's: it is refused there, and goes on here."""
    names = {
        each.name
        for each in schema.fields
        if each.schema.type is SchemaType.STRUCT and each.schema.default is not None
    }
    structs = [part.value for row in rows for part in (row.key, row.value) if part.value]
    return any(struct[name] is None for struct in structs for name in names)


def _casts_all_of_a_logical_type(config: Config, schema: Schema) -> bool:
    """The schema keeps the logical name, and the converters refuse it there; here they write the number."""
    return ":" not in config["spec"] and schema.name in _LOGICAL


def _masks_a_decimal(config: Config, schema: Schema) -> bool:
    """The mask takes the field's scale; there the converter refuses the record."""
    masked = config["fields"].split(",")
    names = {each.schema.name for each in schema.fields if each.name in masked}
    return decimal(0).name in names


def _renames_what_is_not_kept(config: Config, schema: Schema) -> bool:
    """A field of the new name stays what it is; there its value is looked for under the old name."""
    kept = _names(config, "include") or {each.name for each in schema.fields}
    kept = (kept & {each.name for each in schema.fields}) - _names(config, "exclude")
    return any(each.partition(":")[0] not in kept for each in _names(config, "renames"))


def _names(config: Config, key: str) -> set[str]:
    return set(filter(None, config.get(key, "").split(",")))


_KNOWN: Mapping[str, Callable[[Config, Schema], bool]] = {
    "Cast": _casts_all_of_a_logical_type,
    "MaskField": _masks_a_decimal,
    "ReplaceField": _renames_what_is_not_kept,
}
