"""Files among others whose extension tells no format: they are left out with a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.formats import extension_of, format_of, known_by_extension
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.selecting.named import named_on_disk
from headrace.connectors.files.selecting.scope import Failed

if TYPE_CHECKING:
    from headrace.connectors.files.config import FilesConfig
    from headrace.connectors.files.selecting.selection import EventListener

_LEFT_OUT: Final = (
    "Its extension does not identify the format, so that it is left out. To read such files, set files.format{hint}; "
    "where they hold no records, name them in files.exclude."
)
_HINTS: Final[Mapping[str, str]] = {".json": " (jsonl if each line is a document)"}
_MAGIC: Final = frozenset("*?[")
# Names that end with numbers have an extension each.
_MOST_TOLD: Final = 100


class UnknownExtensionFilter:
    """With ``files.format=auto``, what a listing finds beside files of known extensions. Used on one thread.

    What ``files.path`` names, itself or by a glob that ends with an extension, is none; nor what was begun. Where
    nothing has a known extension the listing fails: that must not look like a place without files.
    """

    def __init__(self, config: FilesConfig, tell: EventListener) -> None:
        self._config = config
        self._tell = tell
        self._is_auto = config.format == "auto"
        self._named = {*config.path, *named_on_disk(config)}
        self._fixed = {extension_of(each) for each in config.path if _is_glob(each)}
        self._has_known = False
        self._first: str | None = None
        self._told = set[str]()

    def begin(self) -> None:
        """A listing begins."""
        self._first = None

    def against(self, path: str, progress: Progress) -> str | None:
        """Why the file at *path* is left out; ``None`` where it is not."""
        if not self._is_auto or known_by_extension(path):
            self._has_known = True
            return None
        extension = extension_of(path)
        if not progress.is_new or path in self._named or extension in self._fixed:
            return None
        self._first = self._first or path
        told = _LEFT_OUT.format(hint=_HINTS.get(extension, ""))
        is_told = extension in self._told or len(self._told) >= _MOST_TOLD
        if self._has_known and not is_told:
            self._told.add(extension)
            self._tell(path, told)
        return told

    def ended(self, known: Mapping[str, Progress], failed: Failed, *, lists_all: bool) -> None:
        """A listing, of all or of what sorts behind something, has come to its end: tell what was left out.

        Gives *failed* the first of it where nothing else was there, nor is *known*.
        """
        if self._first is None:
            return
        if self._has_known or not lists_all or next(iter(known), None) is not None:
            self._has_known = True
            self.against(self._first, Progress())
            return
        try:
            format_of(self._first, self._config)
        except TaskFailedError as error:
            failed(self._first, error)


def _is_glob(path: str) -> bool:
    """Whether *path* is a glob whose extension is no glob."""
    name = path.rpartition("/")[2]
    extension = extension_of(path)
    return bool(_MAGIC & set(name)) and bool(extension) and not _MAGIC & set(extension)
