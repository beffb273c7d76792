"""What can be told of each record besides what it holds: where it comes from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from headrace.connect.header_columns import HeaderColumn
from headrace.connect.schema import BOOLEAN, INT64, STRING, Schema
from headrace.connectors.files.details import SplitDetails
from headrace.formats.chunk import Chunk

NAME, SIZE, MODIFIED = "name", "size", "modified"
RECORD, POSITION, LAST = "record", "position", "last"
FACTS: Final = (NAME, SIZE, MODIFIED, RECORD, POSITION, LAST)
"""What may be asked for, in the order in which it is told: the last one is put right when all has been read."""

SCHEMAS: Final[Mapping[str, Schema]] = {
    NAME: STRING,
    SIZE: INT64,
    MODIFIED: INT64,
    RECORD: INT64,
    POSITION: INT64,
    LAST: BOOLEAN,
}


class RecordFacts:
    """Tells the facts about one split's records that *names* asks for, under the names that it gives them.

    *has_bytes* says that the anchors of its format are bytes; without it there is no position.
    """

    def __init__(
        self, names: Mapping[str, str], path: str, details: SplitDetails, *, has_bytes: bool
    ) -> None:
        self._names = {
            fact: names[fact] for fact in FACTS if fact in names and (has_bytes or fact != POSITION)
        }
        self._constants = {
            NAME: path,
            SIZE: details.size,
            MODIFIED: details.modified_ms,
            LAST: False,
        }

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The schema of what is told under each name, in order."""
        return {name: SCHEMAS[fact] for fact, name in self._names.items()}

    def of(self, chunk: Chunk, rows: slice) -> list[HeaderColumn]:
        """What is told of *rows* of *chunk*: that none of them is the last one."""
        columns = {RECORD: chunk.counts, POSITION: chunk.anchors}
        return [
            HeaderColumn(
                key=name,
                value=self._constants.get(fact),
                values=pa.array(columns[fact][rows]) if fact in columns else None,
                schema=SCHEMAS[fact],
            )
            for fact, name in self._names.items()
        ]
