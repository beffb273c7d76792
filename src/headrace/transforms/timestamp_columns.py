"""Columns of times from one form into another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.schema import arrow_type
from headrace.transforms.date_columns import read, written
from headrace.transforms.java_calendar import DAY_MILLIS
from headrace.transforms.timestamps import NANOS, SCHEMAS, TimeForm, TimeSettings

_Millis = npt.NDArray[np.int64]
_MILLI_NANOS = NANOS["milliseconds"]
_LONGEST = 2**63 - 1
# The years 1 and 9999, beyond which Python has no dates.
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999


def converted_column(
    column: pa.Array, source: TimeForm, target: TimeForm, settings: TimeSettings
) -> pa.Array | None:
    """*column* in the form *target*, nulls as nulls; ``None`` when its rows have to go one by one. Pure."""
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
