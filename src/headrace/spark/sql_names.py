"""The names by which the expressions of a SQL step know a record: the value's fields, and its other parts."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)
from pyspark.sql.types import StructType

RECORD: Final = "record"
"""The column with all parts of a record, also of those whose names a field has taken."""
ROW: Final = "_headrace"
"""The column that carries the whole row of a frame."""
RESERVED: Final = (RECORD, ROW)
_PARTS: Final = ("key", "value", "headers", "timestamp", "topic", "partition")


def value_fields(frame: DataFrame) -> tuple[str, ...] | None:
    """The names of the value's fields, in their order; ``None`` when it has none. Asks Spark for the schema."""
    kind = frame.schema["value"].dataType
    return tuple(kind.names) if isinstance(kind, StructType) else None


def named(frame: DataFrame) -> DataFrame:
    """*frame* as expressions see it: fields, parts of the record whose names are free, ``record``, and the row.

    Raises ``ValueError`` with a sentence for a field with a name that is reserved.
    """
    fields = value_fields(frame) or ()
    refuse_reserved(fields)
    taken = {each.casefold() for each in fields}
    free = [_part(each).alias(each) for each in _PARTS if each not in taken]
    every = ["value.*"] if fields else []
    return frame.select(*every, *free, record().alias(RECORD), F.struct("*").alias(ROW))


def refuse_reserved(fields: tuple[str, ...]) -> None:
    """Raise ``ValueError`` with a sentence when one of *fields* is called as what is not the value's."""
    for each in fields:
        if each.casefold() in RESERVED:
            raise ValueError(
                f"The value has a field {each!r}, which is a name for the whole record here. Give it another "
                "one before, with ReplaceField and renames."
            )


def record() -> Column:
    """All parts of the record of a frame's row."""
    return F.struct(*(_part(each).alias(each) for each in _PARTS))


def _part(name: str) -> Column:
    # Frames count milliseconds, SQL has a type for moments.
    return F.timestamp_millis(F.col(name)) if name == "timestamp" else F.col(name)


def expression(text: str) -> Column:
    """What *text* says; a ``*`` at its beginning stands for the fields of the value, not for all columns there are.

    Raises what Spark raises for text that it does not understand.
    """
    return F.expr(f"{ROW}.value.{text}" if text.startswith("*") else text)


def condition(text: str) -> Column:
    """What *text* says, which is no expression with a name: a word behind it would be taken for one, also AND.

    Raises what Spark raises for text that it does not understand.
    """
    # On a line of its own: a comment may end the text.
    return F.expr(f"({text}\n)")
