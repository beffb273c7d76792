"""TimestampConverter: times as text, as numbers, or as Connect's logical types."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType, arrow_type
from headrace.java.date_format import pattern_problem, tokens
from headrace.java.date_parsing import DateReader
from headrace.java.gregorian_calendar import DAY_MILLIS
from headrace.transforms.fields import NULLS_DOC, FieldReader, field_readers
from headrace.transforms.record_part import (
    RecordPart,
    is_absent,
    is_all_null,
    required_map,
    required_struct,
)
from headrace.transforms.struct_plan import Member, Plans, StructPlan, struct_like, struct_plan
from headrace.transforms.timestamps import (
    NANOS,
    SCHEMAS,
    TimeForm,
    TimeSettings,
    converted,
    form_of_schema,
    form_of_value,
    read,
    written,
)

_Millis = npt.NDArray[np.int64]
_MILLI_NANOS = NANOS["milliseconds"]
_LONGEST = 2**63 - 1
# The years 1 and 9999, the limits of Python's dates.
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999


def converted_column(
    column: pa.Array, source: TimeForm, target: TimeForm, settings: TimeSettings
) -> pa.Array | None:
    """*column* in the form *target*, nulls as nulls; ``None`` when its rows have to be converted one by one. Pure."""
    valid = column.drop_null() if column.null_count else column
    if not len(valid):
        return pa.nulls(len(column), arrow_type(SCHEMAS[target]))
    millis = _millis(valid, source, settings)
    changed = None if millis is None else _formed(millis, target, settings)
    if changed is None or not column.null_count:
        return changed
    rows = pc.subtract(pc.cumulative_sum(pc.cast(column.is_valid(), pa.int64())), 1)
    return changed.take(pc.if_else(column.is_valid(), rows, None))


def _millis(column: pa.Array, source: TimeForm, settings: TimeSettings) -> _Millis | None:
    """Milliseconds since 1970."""
    if source is TimeForm.STRING:
        return None if settings.pattern is None else read(settings.pattern, column)
    if source is TimeForm.UNIX:
        return _scaled(column.to_numpy(), settings.unit_nanos, _MILLI_NANOS)
    if source is TimeForm.TIMESTAMP:
        return column.view(pa.int64()).to_numpy()
    numbers = column.view(pa.int32()).to_numpy().astype(np.int64)
    return numbers * DAY_MILLIS if source is TimeForm.DATE else numbers


def _formed(millis: _Millis, target: TimeForm, settings: TimeSettings) -> pa.Array | None:
    kind = arrow_type(SCHEMAS[target])
    if target is TimeForm.STRING:
        assert settings.pattern is not None, "checked with the settings"
        return written(settings.pattern, millis)
    if target is TimeForm.UNIX:
        numbers = _scaled(millis, _MILLI_NANOS, settings.unit_nanos)
        return None if numbers is None else pa.array(numbers)
    if target is TimeForm.TIME:
        return pa.array((millis % DAY_MILLIS).astype(np.int32)).view(kind)
    if len(millis) and not (millis.min() >= _FIRST and millis.max() <= _LAST):
        return None
    if target is TimeForm.DATE:
        return pa.array((millis // DAY_MILLIS).astype(np.int32)).view(kind)
    return pa.array(millis).view(kind)


def _scaled(numbers: _Millis, numerator: int, denominator: int) -> _Millis | None:
    """*numbers* in another unit, cut towards zero; ``None`` where that goes beyond 64 bits."""
    if numerator >= denominator:
        factor = numerator // denominator
        limit = _LONGEST // factor
        if len(numbers) and (numbers.min() < -limit or numbers.max() > limit):
            return None
        return numbers * factor
    divisor = denominator // numerator
    quotients = numbers // divisor
    return quotients + ((quotients < 0) & (quotients * divisor != numbers))


_PURPOSE: Final = "converting timestamp formats"


class TimestampConverterConfig(Config):
    field: str = setting(
        default="",
        importance="high",
        doc="The field with the timestamp; empty where the whole key or value is one.",
    )
    target_type: Literal["string", "unix", "Date", "Time", "Timestamp"] = setting(
        importance="high",
        doc=(
            "What the timestamp becomes: text, a number since 1970, or Connect's logical types. Its"
            " present form follows from its schema; without one, a text is read by format and a number by unix.precision."
        ),
    )
    format: str = setting(
        default="",
        doc="How timestamps that are text are written and read, as a pattern of Java's SimpleDateFormat: UTC, English.",
    )
    unix_precision: str = setting(
        default="milliseconds",
        importance="low",
        one_of=("nanoseconds", "microseconds", "milliseconds", "seconds"),
        doc="The unit of timestamps that are numbers. Fractions of a millisecond are lost.",
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Require a pattern for text, and a valid one."""
        if self.target_type == TimeForm.STRING and not self.format.strip():
            message = "requires format option to be specified when using string timestamps"
            yield "format", f"TimestampConverter {message}"
        problem = pattern_problem(self.format)
        if problem is not None:
            message = "requires a SimpleDateFormat-compatible pattern for string timestamps"
            yield "format", f"TimestampConverter {message}: {self.format}: {problem}"


class TimestampConverter:
    """Converts a field, or a whole operand, to another form of time."""

    config_class = TimestampConverterConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = TimestampConverterConfig.parse(config)
        self._field = parsed.field
        self._target = TimeForm(parsed.target_type)
        self._defaults = parsed.replace_null_with_default
        self._settings = _settings(parsed)
        self._wholes = Plans(self._target_schema)
        self._structs = Plans(self._plan)

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with the timestamp converted; a null stays null, with the schema of the others."""
        value, schema = self._operand.value(record), self._operand.schema(record)
        if schema is None:
            if is_absent(value):
                return record
            return self._operand.replaced(record, None, self._without_schema(value))
        if not self._field:
            form = form_of_schema(schema)
            return self._operand.replaced(record, self._wholes.of(schema), self._of(value, form))
        is_null_struct = value is None and schema.type is SchemaType.STRUCT
        struct = None if is_null_struct else required_struct(schema, value, _PURPOSE)
        plan = self._structs.of(schema)
        fields = None if struct is None else plan.value(struct)
        return self._operand.replaced(record, plan.schema, fields)

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema, and texts are of a fixed form."""
        column, schema = self._operand.column(batch), self._operand.column_schema(batch)
        if column is None and schema is None:
            return [batch]
        if column is None or schema is None:
            return None
        if not self._field:
            whole = converted_column(column, form_of_schema(schema), self._target, self._settings)
            return self._replaced(batch, self._wholes.of(schema), whole)
        if schema.type is not SchemaType.STRUCT or is_all_null(column):
            return None
        plan = self._structs.of(schema)
        return self._replaced(batch, plan.schema, plan.column(column))

    def _replaced(
        self, batch: SourceBatch, schema: Schema, column: pa.Array | None
    ) -> Sequence[SourceBatch] | None:
        return None if column is None else [self._operand.replaced_column(batch, schema, column)]

    def _of(self, value: object, form: TimeForm) -> object:
        return converted(value, form, self._target, self._settings)

    def _without_schema(self, value: object) -> object:
        if not self._field:
            return self._of(value, form_of_value(value))
        entries = required_map(value, _PURPOSE)
        held = entries.get(self._field)
        changed = None if held is None else self._of(held, form_of_value(held))
        return {**entries, self._field: changed}

    def _target_schema(self, schema: Schema) -> Schema:
        target = SCHEMAS[self._target]
        return target.as_optional() if schema.optional else target

    def _plan(self, schema: Schema) -> StructPlan:
        members = list[Member]()
        fields = list[Field]()
        for reader in field_readers(schema, defaults=self._defaults):
            is_time = reader.name == self._field
            members.append(self._member(reader) if is_time else reader)
            fields.append(
                Field(reader.name, self._target_schema(reader.schema)) if is_time else reader.field
            )
        plan = struct_plan(struct_like(schema, fields), members)
        default = None if schema.default is None else plan.value(_struct(schema.default))
        changed = dataclasses.replace(plan.schema, optional=schema.optional, default=default)
        return dataclasses.replace(plan, schema=changed)

    def _member(self, reader: FieldReader) -> _Member:
        return _Member(reader, self._target, self._settings)


@dataclass(frozen=True, slots=True)
class _Member:
    """The field that is converted. Pure."""

    reader: FieldReader
    target: TimeForm
    settings: TimeSettings

    def value(self, struct: Mapping[str, Any]) -> object:
        return converted(self.reader.value(struct), self._form(), self.target, self.settings)

    def column(self, structs: pa.StructArray) -> pa.Array | None:
        held = self.reader.column(structs)
        return converted_column(held, self._form(), self.target, self.settings)

    def _form(self) -> TimeForm:
        # Determined only for a struct that is not null: null ones pass, whatever the field is.
        return form_of_schema(self.reader.schema)


def _struct(default: object) -> Mapping[str, Any]:
    assert isinstance(default, Mapping), "the default of a struct is one"
    return default


def _settings(config: TimestampConverterConfig) -> TimeSettings:
    """The settings of parsing and formatting; the century of a year with two digits depends on the current time."""
    now = int(dt.datetime.now(dt.UTC).timestamp() * 1000)
    pattern = tokens(config.format) if config.format.strip() else None
    return TimeSettings(
        unit_nanos=NANOS[config.unix_precision],
        format=config.format,
        pattern=pattern,
        reader=None if pattern is None else DateReader(pattern, now=now),
    )
