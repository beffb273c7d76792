"""The Arrow types in which Spark carries frames from the reading process to the writing one; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

RECORD: Final = 0
DEAD_LETTER: Final = 1
FILTERED: Final = 2
REFUSED: Final = 3
END_OF_POLL: Final = 4
COMMIT: Final = 5
ABORT: Final = 6
FAILED: Final = 7
BATCH: Final = 8
"""What the records behind have in common, and how many they are."""
END: Final = 9
"""Reading has ended; nothing comes behind that counts."""
NOTHING: Final = 10
"""Only there to push what precedes it through Spark."""
WAITING: Final = 11

MICROSECONDS: Final = pa.timestamp("us", tz="UTC")
HEADER: Final = pa.struct([pa.field("key", pa.utf8()), pa.field("value", pa.utf8())])

_Is = Callable[[pa.DataType], bool]
_PLAIN: tuple[tuple[_Is, pa.DataType], ...] = (
    (pa.types.is_null, pa.utf8()),
    (pa.types.is_large_string, pa.utf8()),
    (pa.types.is_string_view, pa.utf8()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    # Spark has a type for times of day only where it is switched on.
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTypes:
    """What the keys and values of all records of a connector are; fixed before its job begins.

    Both are as :func:`travelling` says. *read* is the values' type with what of it is required (*value* has it
    all nullable), *left* the same behind the step; each is ``None`` where nothing is required, or it is not known.
    """

    value: pa.DataType = field(default_factory=pa.utf8)
    key: pa.DataType = field(default_factory=pa.utf8)
    read: pa.DataType | None = None
    left: pa.DataType | None = None

    def schema(self) -> pa.Schema:
        """The columns of frames, in their order."""
        return pa.schema(
            {
                "kind": pa.int8(),
                "topic": pa.utf8(),
                "partition": pa.int32(),
                "key": self.key,
                "value": self.value,
                "headers": pa.list_(HEADER),
                "timestamp": pa.int64(),
                "source_partition": pa.int32(),
                "offset": pa.binary(),
                "keep": pa.bool_(),
                "note": pa.binary(),
            }
        )


def travelling(kind: pa.DataType, *, as_required: bool = False) -> pa.DataType:
    """The type in which Spark carries values of *kind*: every field nullable, instants in microseconds.

    That of a carried type is itself, whatever Spark calls its parts. A time of day is a number. *as_required*
    keeps what is not nullable as it is: Spark must not be told, it would take such a null for a value.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return travelling(kind.storage_type, as_required=as_required)
    if pa.types.is_timestamp(kind):
        return MICROSECONDS if kind.tz else pa.timestamp("us")

    def part(name: str, of: pa.Field) -> pa.Field:
        nullable = of.nullable or not as_required
        return pa.field(name, travelling(of.type, as_required=as_required), nullable=nullable)

    if pa.types.is_struct(kind):
        return pa.struct([part(each.name, each) for each in kind])
    if pa.types.is_map(kind):
        key = travelling(kind.key_type, as_required=as_required)
        return pa.map_(key, part("value", kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(part("item", kind.value_field))
    return next((carried for belongs, carried in _PLAIN if belongs(kind)), kind)


def has_times(kind: pa.DataType) -> bool:
    """Whether there are times of day in *kind*, which none of the carried types has."""
    return pa.types.is_time(kind) or any(
        has_times(kind.field(index).type) for index in range(kind.num_fields)
    )
