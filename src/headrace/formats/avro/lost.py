"""Records of a block that is damaged inside, while the block behind it can be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.formats.avro.block import name_of
from headrace.formats.avro.container import BlockHead
from headrace.formats.chunk import Resume
from headrace.formats.unreadable import Unread, UnreadableRecordError


class LostRecordsError(UnreadableRecordError):
    """Raised once for all that is left of a block; that counts as many records as the block says it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRecords:
    """The last *count* records of the block of *head*, which ends at byte *end*.

    *counted* records of the object came before them. *unpacked* says that bytes are those of an unpacked file.
    """

    head: BlockHead
    end: int
    count: int
    counted: int
    unpacked: bool

    def error(
        self, damage: RecordError, native_key: str, constants: Mapping[str, OffsetValue]
    ) -> LostRecordsError:
        """What is raised for them; *damage* says what is wrong with the first one, or with the block.

        *constants* are part of every offset of the object.
        """
        number = self.head.count - self.count + 1
        rest = "1 record" if self.count == 1 else f"{self.count} records"
        return LostRecordsError(
            f"{damage.reason} This is about {rest}, up to the end of the block.",
            native_key=native_key,
            position=f"{name_of(self.head.position, number)} (record {self.counted + 1})",
            advice="Write the file again from what it was made of.",
            record=Unread(
                behind=Resume(anchor=self.end, record_count=self.counted + self.count),
                reference=self._reference(number),
                constants=constants,
            ),
        )

    def _reference(self, number: int) -> dict[str, OffsetValue]:
        # Where the first of them begins in a packed block cannot be told, so the range is the whole block's.
        place = {"block": self.head.position, "record": number, "records": self.count}
        borders = {"from": self.head.position, "to": self.end}
        return {**place, **borders, **({"unpacked": True} if self.unpacked else {})}
