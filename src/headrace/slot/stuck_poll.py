"""A poll that raises the same record again, although it was passed over."""

from __future__ import annotations

from headrace.connect.bad_record import BadRecord
from headrace.connect.errors import RecordError, TaskFailedError

# So many bad records without an offset may look the same, one directly behind the other.
_MOST_ALIKE = 100


class StuckPoll:
    """Notices a task that does not go on behind a bad record, and would have it passed over for ever."""

    def __init__(self) -> None:
        self._passed: tuple[str, BadRecord] | None = None
        self._alike = 0

    def check(self, error: RecordError, bad: BadRecord) -> None:
        """Poll raises *error*, which is about *bad*.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when that was passed over just now.
        """
        told = (str(error), bad)
        self._alike = self._alike + 1 if told == self._passed else 0
        # Where no offset says that it is the same record, another one may well be like it.
        if self._alike > (_MOST_ALIKE if bad.source_offset is None else 0):
            raise TaskFailedError(
                f"{error} It was passed over, and poll raises it again: after a RecordError the next call of "
                "poll must go on behind the record."
            )
        self._passed = told

    def went_on(self) -> None:
        """Poll has returned records."""
        self._passed = None
        self._alike = 0
