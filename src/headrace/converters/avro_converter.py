"""Avro with a schema registry, as Confluent's AvroConverter writes it: a zero, the schema's id, the datum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema
from headrace.converters.avro_config import AvroConverterConfig, subject_of
from headrace.converters.avro_schema import AvroJson, avro_schema, avro_text
from headrace.converters.avro_values import avro_pieces, constant, joined
from headrace.converters.columns import refusal
from headrace.converters.registry_client import RegistryClient
from headrace.converters.schema_ids import Bounded, SchemaIds

_MAGIC = b"\x00"


@dataclass(frozen=True, slots=True)
class _Made:
    """The Avro form of a schema; *of* is kept because the schema is found by its identity in memory."""

    of: Schema
    avro: AvroJson
    text: str


class AvroConverter:
    """Writes values that have a schema; sends one request to the registry per schema, topic and slot."""

    config_class = AvroConverterConfig

    def __init__(self) -> None:
        self._is_key = False

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take Confluent's keys: ``schema.registry.url`` and its companions. Contacts no registry."""
        parsed = AvroConverterConfig.parse(config)
        self._is_key = is_key
        self._rules = parsed.rules
        self._strategy = (
            parsed.key_subject_name_strategy if is_key else parsed.value_subject_name_strategy
        )
        self._made: Bounded[int, _Made] = Bounded(parsed.schemas_cache_config)
        self._ids = SchemaIds(
            RegistryClient(parsed.access), parsed.choice, most=parsed.max_schemas_per_subject
        )

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The bytes of each of *values*; a null stays null, where the schema allows one.

        Raises also what the registry's client does: :class:`~headrace.connect.errors.RetriableError` when
        it is away, :class:`~headrace.connect.errors.TaskFailedError` when it refuses access.
        """
        count = len(values)
        if not count or (values.null_count == count and (schema is None or schema.optional)):
            return pa.nulls(count, pa.binary())
        if schema is None:
            raise refusal(
                "AvroConverter needs values with a schema, and these have none: use the converter json, "
                "string or bytes for them.",
                values,
            )
        rows = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
        pieces = avro_pieces(schema, values, self._rules, rows if schema.optional else None)
        head = _MAGIC + self._id(topic, schema, values).to_bytes(4, "big")
        column = joined((constant(head, count), *pieces), count)
        return column if rows is None else pc.if_else(pa.array(rows), column, None)

    def _id(self, topic: str, schema: Schema, values: pa.Array) -> int:
        try:
            made = self._made_of(schema)
            subject = subject_of(self._strategy, topic, made.avro, is_key=self._is_key)
            return self._ids.id_of(subject, made.avro, made.text)
        except RecordError as error:
            located = refusal(error.reason, values)
            raise RecordError(error.reason, row=located.row, advice=error.advice) from error

    def _made_of(self, schema: Schema) -> _Made:
        """The Avro form of *schema*. Batches of one object share their schema, so it is found by its identity."""
        known = self._made.get(id(schema))
        if known is None:
            avro = avro_schema(schema, self._rules)
            known = self._made.put(id(schema), _Made(schema, avro, avro_text(avro)))
        return known
