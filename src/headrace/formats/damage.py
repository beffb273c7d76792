"""An object of which nothing more can be read, because no one knows where its next record begins."""

from __future__ import annotations

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.formats.unpacking import DamagedPackingError


class DamagedObjectError(TaskFailedError):
    """Raised by an ``ObjectReader``, now and ever after: put the object in quarantine, or fail.

    *damage* says what is wrong and where. What was read before it is sound, but for *packing*: what packed bytes came to
    need not be.
    """

    def __init__(self, damage: RecordError) -> None:
        super().__init__(str(damage))
        self.reason = damage.reason
        self.native_key = damage.native_key
        self.position = damage.position
        self.advice = damage.advice
        self.packing = isinstance(damage, DamagedPackingError)
