"""What was made of a schema, kept for as long as the same schema comes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from headrace.connect.schema import Schema

_Made = TypeVar("_Made")

# Kafka Connect's transformations keep as many.
_KEPT: Final = 16


class Remembered(Generic[_Made]):
    """Answers of a pure function of schemas, by identity: comparing schemas costs more than most answers.

    Used on one thread.
    """

    def __init__(self, make: Callable[[Schema], _Made]) -> None:
        self._make = make
        # With its schema, so that no other one gets its identity.
        self._kept = dict[int, tuple[Schema, _Made]]()

    def __call__(self, schema: Schema) -> _Made:
        """What is made of *schema*."""
        kept = self._kept.get(id(schema))
        if kept is not None:
            return kept[1]
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        made = self._make(schema)
        self._kept[id(schema)] = (schema, made)
        return made
