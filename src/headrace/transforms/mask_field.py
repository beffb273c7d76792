"""MaskField: replaces values of fields by an empty value of their type, or by a given replacement (KIP-437)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema, SchemaType
from headrace.java.numbers import decimal_float, decimal_int, parsed_decimal
from headrace.transforms.casting import FLOAT_BITS, INT_BITS
from headrace.transforms.fields import NULLS_DOC, FieldReader, field_readers, plain_value
from headrace.transforms.record_part import RecordPart, is_all_null, java_class, list_problems
from headrace.transforms.struct_plan import Member, Plans, StructChange, StructPlan, struct_plan

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONG, _DOUBLE = INT_BITS[SchemaType.INT64], FLOAT_BITS[SchemaType.FLOAT64]


@dataclass(frozen=True, slots=True)
class Mask:
    """Replaces values: by *replacement*, or without one by the empty value of their type. Pure."""

    replacement: str | None

    def of(self, schema: Schema | None, value: object) -> Any:  # noqa: ANN401 (of the type of *value*)
        """The replacement of *value*, which may have a *schema*; ``None`` stays.

        Raises :class:`~headrace.connect.errors.RecordError` for a value of a type that cannot be masked,
        and for a number if the replacement is not one.
        """
        if value is None:
            return None
        if self.replacement is None:
            return _zero(schema, value)
        return _replaced(schema, value, self.replacement)


def _zero(schema: Schema | None, value: object) -> Any:  # noqa: ANN401 (of the type of *value*)
    if isinstance(value, bytes) or (schema is not None and schema.type is SchemaType.STRUCT):
        raise RecordError(f"Cannot mask value of type: class {java_class(value, schema)}")
    if isinstance(value, bool | int | float | str | Mapping | list | tuple | Decimal):
        return _ZEROS[next(kind for kind in _ZEROS if isinstance(value, kind))]
    if isinstance(value, dt.datetime):
        return _EPOCH
    return dt.time() if isinstance(value, dt.time) else _EPOCH.date()


_ZEROS: Final[Mapping[type[Any], Any]] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    Decimal: Decimal(0),
    Mapping: {},
    list: [],
    tuple: [],
}


def _replaced(schema: Schema | None, value: object, text: str) -> Any:  # noqa: ANN401 (of the type of *value*)
    if isinstance(value, str):
        return text
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        class_name = java_class(value, schema)
        raise RecordError(f"Cannot mask value of type class {class_name} with custom replacement.")
    try:
        number = parsed_decimal(text)
    except ValueError:
        raise RecordError(
            f"Unable to convert {text} (class java.lang.String) to a number"
        ) from None
    return _numeric(schema, value, number)


def _numeric(schema: Schema | None, value: object, number: Decimal) -> int | float | Decimal:
    if isinstance(value, Decimal):
        return number
    kind = None if schema is None else schema.type
    if isinstance(value, float):
        return decimal_float(number, FLOAT_BITS.get(kind, _DOUBLE) if kind else _DOUBLE)
    return decimal_int(number, INT_BITS.get(kind, _LONG) if kind else _LONG)


class MaskFieldConfig(Config):
    fields: tuple[str, ...] = setting(importance="high", doc="The fields to mask.")
    replacement: str | None = setting(
        default=None,
        importance="low",
        non_empty=True,
        doc=(
            "The replacement of numbers and texts. Without it they become 0 and empty, as do dates and times; "
            "booleans become false, arrays and maps empty."
        ),
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Require fields, each once."""
        yield from list_problems("fields", self.fields, may_be_empty=False)


class MaskField:
    """Masks fields, whose nulls stay null; a null operand is refused, because it has no fields to mask."""

    config_class = MaskFieldConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        settings = MaskFieldConfig.parse(config)
        self._fields = settings.fields
        self._mask = Mask(settings.replacement)
        self._defaults = settings.replace_null_with_default
        self._change = StructChange(
            operand=self._operand,
            purpose="mask fields",
            plans=Plans(self._plan),
            of_map=self._of_map,
            refuses_null=True,
        )

    def apply(self, record: SourceRecord) -> SourceRecord:
        return self._change.apply(record)

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema."""
        return self._change.apply_batch(batch)

    def _of_map(self, entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
        # As in Kafka Connect, a missing entry is added as null.
        masked = {name: self._mask.of(None, entries.get(name)) for name in self._fields}
        return {**entries, **masked}

    def _plan(self, schema: Schema) -> StructPlan:
        readers = field_readers(schema, defaults=self._defaults)
        members: list[Member] = [
            _Masked(each, self._mask) if each.name in self._fields else each for each in readers
        ]
        return struct_plan(schema, members)


@dataclass(frozen=True, slots=True)
class _Masked:
    """A field that is masked."""

    reader: FieldReader
    mask: Mask

    def value(self, struct: Mapping[str, Any]) -> Any:  # noqa: ANN401 (whatever the field holds)
        return self.mask.of(self.reader.schema, self.reader.value(struct))

    def column(self, structs: pa.StructArray) -> pa.Array | None:
        column = self.reader.column(structs)
        if is_all_null(column):
            return column
        # All values of a column have one type, and so one mask.
        shown = plain_value(column.drop_null()[0])
        try:
            masked = pa.array([self.mask.of(self.reader.schema, shown)], column.type)
        except pa.ArrowInvalid:
            # A decimal with more digits than the field's scale.
            return None
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return masked.take(pa.array(np.zeros(len(column), np.int64), mask=nulls))
