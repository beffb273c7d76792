"""What is listed although its entry says that it is missing: the note is removed."""

from __future__ import annotations

from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.progress import MISSING, as_shown, whole
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.folding import MOST


class Returned:
    """One for each listing that asks by *asked*. A note that stayed would count when the object is away again."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._paths = list[str]()

    def decided(self, path: str, decision: Decision) -> None:
        """The object at *path* is there, and *decision* says what is done with it."""
        # What is read now gets its next entry from the slot.
        if path in self._asked.returned and not (decision.pieces or decision.offsets):
            self._paths.append(path)

    def left_out(self, path: str) -> None:
        """There is something at *path*, and it is not selected."""
        if path in self._asked.known and self._is_noted(path):
            self._paths.append(path)

    def offsets(self) -> Offsets:
        """Behind the listing, or a part of it: entries without notes, each once."""
        paths = [path for path in self._paths[:MOST] if path in self._asked.known]
        # Another plan may go on with the listing, and need not say so again.
        self._paths = self._paths[MOST:]
        entries = ((path, self._asked.known[path].entry) for path in paths)
        return {whole(path): as_shown(entry) for path, entry in entries if entry is not None}

    def _is_noted(self, path: str) -> bool:
        return MISSING in (self._asked.known[path].entry or {})
