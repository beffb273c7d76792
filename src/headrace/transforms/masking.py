"""What stands for a value that is not to be seen; pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema, SchemaType
from headrace.transforms.casting import FLOAT_BITS, INT_BITS
from headrace.transforms.java_numbers import decimal_float, decimal_int, parsed_decimal
from headrace.transforms.requiring import java_class

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONG, _DOUBLE = INT_BITS[SchemaType.INT64], FLOAT_BITS[SchemaType.FLOAT64]


@dataclass(frozen=True, slots=True)
class Mask:
    """What takes the place of values: *replacement*, or without one what says nothing. Pure."""

    replacement: str | None

    def of(self, schema: Schema | None, value: object) -> Any:  # noqa: ANN401 (of the type of *value*)
        """What stands for *value*, which may have a *schema*; ``None`` stays.

        Raises :class:`~headrace.connect.errors.RecordError` for a value of a type that cannot be masked,
        and for a number where the replacement is none.
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
        told = java_class(value, schema)
        raise RecordError(f"Cannot mask value of type class {told} with custom replacement.")
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
