"""The objects of a store that a configuration selects, decided about by what one listing tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.addresses import Root, prefixes
from headrace.connectors.files.candidate import Candidate, Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import format_of, packing_told
from headrace.connectors.files.planning import decide
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.scope import Failed, LeftOut, Scope, fail, unheard
from headrace.connectors.files.selection import Tell, rules_of
from headrace.connectors.files.stores.errors import ObjectGoneError, retriable
from headrace.connectors.files.stores.store import Store, StoredObject
from headrace.sources.extractors.streams import Compression

_NO_MATCH = (
    "No object is selected by this entry of files.path now. Objects that come later are read."
)
_FOLDER = "It is empty and only shows a folder."
_UNSELECTED = (
    "No entry of files.path selects it: a name in it begins with a dot, it lies in a folder and "
    "files.recursive is false, or no glob matches it."
)
_NOT_BELOW = "Those in folders below it are read with files.recursive=true."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSeen:
    """An object of a store; see :class:`~headrace.connectors.files.seen.ObjectSeen`."""

    path: str
    size: int
    version: str
    modified_ms: int

    def is_still(self, version: str) -> bool:
        """See :class:`~headrace.connectors.files.seen.ObjectSeen`."""
        return version == self.version


class StoreSelection:
    """See :class:`~headrace.connectors.files.selection.Selection`.

    An object of a store is published whole: it is finished as soon as it is listed, does not grow, and is
    another one when its version is. Nothing is read of it before its slot does.
    """

    def __init__(self, config: FilesConfig, root: Root, store: Store, *, tell: Tell) -> None:
        self._config = config
        self._root = root
        self._store = store
        self._tell = tell
        self._rules = rules_of(config)
        self._scope = Scope(config)

    def decisions(
        self,
        known: Mapping[str, Progress],
        *,
        left_out: LeftOut = unheard,
        failed: Failed = fail,
    ) -> Iterator[tuple[str, Decision]]:
        """See :class:`~headrace.connectors.files.selection.Selection`. Keeps one page in memory."""
        for each in self._objects(left_out):
            path = self._root.address(each.key)
            reason = self._scope.against_name(path) or self._scope.against_time(each.modified_ms)
            if reason is not None:
                left_out(path, reason)
                continue
            progress = known.get(path, Progress())
            if progress.done and progress.versions == {each.version}:
                yield path, _NOTHING
                continue
            seen = StoredSeen(
                path=path, size=each.size, version=each.version, modified_ms=each.modified_ms
            )
            try:
                decision = decide(self._candidate(seen), progress, self._rules)
            except TaskFailedError as error:
                failed(path, error)
                continue
            yield path, decision

    def has_lost(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selection.Selection`. Asks the store."""
        key = self._root.key(path)
        if key is None:
            return False
        try:
            with retriable():
                self._store.head(key)
        except ObjectGoneError:
            return True
        return False

    def _objects(self, left_out: LeftOut) -> Iterator[StoredObject]:
        selectors = self._config.selectors
        recursive = self._config.recursive
        unmatched = set(selectors)
        for prefix in prefixes(selectors):
            with retriable():
                for each in self._store.list(prefix, self._scope.start_after):
                    if each.key.endswith("/") and not each.size:
                        # Consoles make such objects to show a folder.
                        left_out(self._root.address(each.key), _FOLDER)
                        continue
                    by = [one for one in selectors if one.selects(each.key, recursive=recursive)]
                    unmatched.difference_update(by)
                    if by:
                        yield each
                    else:
                        left_out(self._root.address(each.key), _UNSELECTED)
        for one in selectors:
            if one in unmatched:
                advice = "" if recursive or one.has_glob else f" {_NOT_BELOW}"
                self._tell(self._root.address(one.text), f"{_NO_MATCH}{advice}")

    def _candidate(self, seen: StoredSeen) -> Candidate:
        form = format_of(seen.path, self._config)
        packing = packing_told(seen.path, self._config)
        # Only its first bytes may tell, and these are read by the slot. An empty one has none.
        plain = packing is Compression.NONE or (packing is None and not seen.size)
        return Candidate(
            file=seen,
            format=form.signature(),
            packed=form.sealed or not plain,
            settled=True,
            readable=seen.size,
            splittable=plain and form.splits,
        )


_NOTHING = Decision()
