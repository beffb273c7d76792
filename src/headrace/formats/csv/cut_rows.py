"""The warning that rows lose fields."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


class CutRows:
    """Tells of the first row that is cut, in all files whose readers share it. Used on one thread."""

    def __init__(self) -> None:
        self._has_told = False

    def tell(self, native_key: str, *, fields: int, expected: int, ragged: str) -> None:
        """A row of *native_key* has so many *fields*, and *ragged* says that it is cut."""
        if self._has_told:
            return
        self._has_told = True
        _log.warning(
            "%s: A row has %d fields, but %d are expected. What is behind these is left out of this row and of any "
            "other one, as csv.ragged=%s says. There may be other files like it: a task tells of the first.",
            native_key,
            fields,
            expected,
            ragged,
        )
