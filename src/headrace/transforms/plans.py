"""What a transformation works out once for each schema that it meets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from headrace.connect.schema import Schema

_Plan = TypeVar("_Plan")

# Records of one task seldom have more schemas than this at a time.
_KEPT = 16


class Plans(Generic[_Plan]):
    """The plans of the last few schemas, each made when its schema comes for the first time.

    Told apart by identity: a batch and its rows share one schema object, and comparing two schemas can cost
    more than a row does.
    """

    def __init__(self, make: Callable[[Schema], _Plan]) -> None:
        self._make = make
        self._kept = dict[int, tuple[Schema, _Plan]]()

    def of(self, schema: Schema) -> _Plan:
        """The plan of *schema*; raises what making it raises."""
        kept = self._kept.get(id(schema))
        return self._added(schema) if kept is None else kept[1]

    def _added(self, schema: Schema) -> _Plan:
        plan = self._make(schema)
        if len(self._kept) == _KEPT:
            del self._kept[next(iter(self._kept))]
        # The schema is kept as well, or another one could get its identity.
        self._kept[id(schema)] = (schema, plan)
        return plan
