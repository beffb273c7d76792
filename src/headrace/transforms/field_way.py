"""Fields within structs within structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.transforms.fields import FieldReader


@dataclass(frozen=True, slots=True)
class FieldWay:
    """Reads a field through the structs that it is in, by one reader for each; null where one of them is. Pure."""

    readers: Sequence[FieldReader]

    def value(self, struct: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 (whatever the field holds)
        """The field's value in *struct*."""
        value: Any = struct
        for reader in self.readers:
            if value is None:
                return None
            value = reader.value(value)
        return value

    def column(self, structs: pa.StructArray) -> pa.Array:
        """The field's values in *structs*, which may be null."""
        column: Any = structs
        for reader in self.readers:
            column = reader.column(column)
        return column
