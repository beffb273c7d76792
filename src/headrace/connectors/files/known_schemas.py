"""The schema of all records, where settings tell it before a file is read."""

from __future__ import annotations

import dataclasses

from headrace.connect.record import RecordSchemas
from headrace.connect.schema import BYTES, Field, Schema, SchemaType
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import named_formats
from headrace.connectors.files.records.facts import FACTS, POSITION, SCHEMAS
from headrace.connectors.files.records.schema import schema_of_text

# Of what these hold, no byte says where a record is.
_SEALED = frozenset({"avro", "parquet"})


def known_schemas(config: FilesConfig) -> RecordSchemas | None:
    """What ``files.schema`` says, with the fields of ``files.fields``; ``None`` where files have their own ones."""
    if config.schema_text is not None:
        return RecordSchemas(value=_widened(schema_of_text(config.schema_text), config))
    if set(named_formats(config)) == {"bytes"}:
        return RecordSchemas(value=BYTES)
    return None


def _widened(own: Schema, config: FilesConfig) -> Schema:
    if own.type is not SchemaType.STRUCT:
        return own
    names, sealed = config.fields, _SEALED.issuperset(filter(None, named_formats(config)))
    asked = (fact for fact in FACTS if fact in names and not (sealed and fact == POSITION))
    added = (Field(names[fact], SCHEMAS[fact].as_optional()) for fact in asked)
    return dataclasses.replace(own, fields=(*own.fields, *added))
