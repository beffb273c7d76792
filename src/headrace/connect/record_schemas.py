"""What a connector knows of its records before it reads any."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSchemas:
    """The schemas of all records of a connector, as its tasks return them.

    Without a schema a value is text, or a JSON document; a key is text, or there is none.
    """

    value: Schema | None = None
    key: Schema | None = None
