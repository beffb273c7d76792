"""The objects of a store that a configuration selects, decided about by what one listing tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.candidate import NOTHING, Candidate, Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.file_opener import HEAD_BYTES
from headrace.connectors.files.formats import format_of, packing_of, packing_told
from headrace.connectors.files.measured import Measured
from headrace.connectors.files.planning import decide
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.selecting.addresses import REASONS, Root, Selector, prefixes
from headrace.connectors.files.selecting.markers import Markers, Nearby
from headrace.connectors.files.selecting.observing import UNOBSERVED, ListingObserver
from headrace.connectors.files.selecting.scope import Failed, LeftOut, Scope, fail, unheard
from headrace.connectors.files.selecting.selection import EventListener, rules_of
from headrace.connectors.files.selecting.unknown_extensions import UnknownExtensionFilter
from headrace.connectors.files.splitting import why_whole
from headrace.formats.streams import Compression
from headrace.stores.errors import (
    ObjectChangedError,
    ObjectGoneError,
    retriable,
)
from headrace.stores.store import Store, StoredObject

_NO_MATCH = (
    "No object is selected by this entry of files.path now. Objects that come later are read."
)
# Out of ten thousand; each is a request.
_ASKED = 10
_FOLDER = "It is empty and only shows a folder."
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
    """See :class:`~headrace.connectors.files.selecting.selection.Selection`.

    An object of a store is published whole: it is finished as soon as it is listed, does not grow, and is
    another one when its version is. Nothing is read of it before its slot does.
    """

    def __init__(
        self, config: FilesConfig, root: Root, store: Store, *, tell: EventListener
    ) -> None:
        self._config = config
        self._root = root
        self._store = store
        self._tell = tell
        self._rules = rules_of(config)
        self._scope = Scope(config)
        self._entries = [
            (each, config.exclusion.beside(each.patterns)) for each in config.selectors
        ]
        self._never_selected = {one for one, _ in self._entries}
        self._nearby = Nearby()
        self._markers = Markers(config.marker, self._is_there)
        self._unknown_extensions = UnknownExtensionFilter(config, tell)

    def decisions(
        self,
        known: Mapping[str, Progress],
        *,
        left_out: LeftOut = unheard,
        failed: Failed = fail,
        observer: ListingObserver = UNOBSERVED,
    ) -> Iterator[tuple[str, Decision]]:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`. Keeps one page in memory."""
        self._markers.begin()
        self._unknown_extensions.begin()
        for path, each in self._objects(left_out, observer, known):
            reason = self._scope.against_name(path) or self._scope.against_time(each.modified_ms)
            reason = reason or observer.passed(path, each.modified_ms)
            if reason is not None:
                left_out(path, reason)
                continue
            progress = known.get(path, _NEW)
            if progress.is_done_as(each.version):
                yield path, NOTHING
                continue
            reason = self._unknown_extensions.against(path, progress)
            if reason is not None:
                left_out(path, reason)
                continue
            try:
                decision = self._decided(each, path, progress)
            except TaskFailedError as error:
                failed(path, error)
                continue
            yield path, decision
        self._unknown_extensions.ended(known, failed, lists_all=not observer.start_after)

    def has_lost(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`. Asks the store."""
        key = self._root.key(path)
        if key is None:
            return False
        return not self._exists(key)

    def forget_markers(self) -> None:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        self._markers.begin()
        self._nearby.forget()

    def selects(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        key = self._root.key(path)
        if key is None or self._scope.against_name(path) is not None:
            return False
        recursive = self._config.recursive
        return any(one.selects(key, recursive=recursive) for one, _ in self._entries)

    def measured(self, path: str) -> Measured | None:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`.

        Its first bytes are read where only they tell how it is packed.
        """
        key = self._root.key(path)
        if key is None:
            return None
        try:
            with retriable():
                found = self._store.head(key)
                packing = packing_of(path, self._head_of(path, found), self._config)
        except (ObjectGoneError, ObjectChangedError):
            # One that changes while it is looked at has no size that would hold for an answer.
            return None
        plain = packing is Compression.NONE
        by_bytes = plain and format_of(path, self._config).byte_anchors
        return Measured(file=_seen(path, found), by_bytes=by_bytes)

    def gone(self, paths: Sequence[str]) -> Sequence[str]:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`.

        The listing is the store's word. Some of them are asked for all the same: where one is there, no word
        of it counts.
        """
        asked = paths[:: len(paths) // _ASKED + 1]
        return paths if all(map(self.has_lost, asked)) else ()

    def _is_there(self, key: str) -> bool:
        """Whether there is a marker *key*."""
        return key in self._nearby or self._exists(key)

    def _exists(self, key: str) -> bool:
        try:
            with retriable():
                self._store.head(key)
        except ObjectGoneError:
            return False
        return True

    def _head_of(self, path: str, found: StoredObject) -> bytes:
        """The first bytes of the object, where these tell something."""
        if packing_told(path, self._config) is not None or not found.size:
            return b""
        with self._store.open(found.key, found.version, size=found.size) as stream:
            return stream.read(HEAD_BYTES) or b""

    def _decided(self, listed: StoredObject, path: str, progress: Progress) -> Decision:
        marker = self._markers.awaited_by(listed.key) if progress.is_new else None
        if marker is not None:
            self._markers.tell(path, marker, self._tell)
            return Decision(waits=True, marker=self._root.address(marker))
        return decide(self._candidate(_seen(path, listed)), progress, self._rules)

    def _objects(
        self, left_out: LeftOut, observer: ListingObserver, known: Mapping[str, Progress]
    ) -> Iterator[tuple[str, StoredObject]]:
        start = self._start(observer)
        unmatched, place = self._never_selected, self._root.address("")
        for prefix in prefixes(one for one, _ in self._entries):
            with retriable():
                for each in self._listed(prefix, start):
                    path = place + each.key
                    observer.saw(path)
                    by, reason = self._selectors_of(each)
                    if unmatched:
                        unmatched.difference_update(by)
                    if by:
                        yield path, each
                    else:
                        left_out(path, reason)
        if start == self._scope.start_after:
            self._tell_unmatched(known)

    def _tell_unmatched(self, known: Mapping[str, Progress]) -> None:
        """Tell which entries of ``files.path`` have never selected anything; what is known was there once."""
        recursive = self._config.recursive
        keys = (
            [key for path in known if (key := self._root.key(path))] if self._never_selected else []
        )
        for one, _ in self._entries:
            if one not in self._never_selected:
                continue
            if not any(one.selects(key, recursive=recursive) for key in keys):
                advice = "" if recursive or one.has_glob else f" {_NOT_BELOW}"
                self._tell(self._root.address(one.text), f"{_NO_MATCH}{advice}")

    def _start(self, observer: ListingObserver) -> str:
        """The key behind which the listing begins."""
        return max(self._scope.start_after, self._root.key(observer.start_after) or "")

    def _listed(self, prefix: str, start: str) -> Iterator[StoredObject]:
        objects = self._store.list(prefix, start)
        return objects if self._config.marker is None else self._nearby.through(objects)

    def _selectors_of(self, listed: StoredObject) -> tuple[list[Selector], str]:
        """Which entries of ``files.path`` select the object, and why none does, where that is so."""
        key = listed.key
        # Written like this because ``list[Selector]()`` takes twenty times as long, for each object.
        found: list[Selector] = []
        reasons: list[str] = []
        if key.endswith("/") and not listed.size:
            # Consoles make such objects to show a folder.
            return found, _FOLDER
        for one, exclusion in self._entries:
            reason = one.against(key, recursive=self._config.recursive)
            reason = reason or exclusion.reason(one.names_in(key))
            if reason is None:
                found.append(one)
            else:
                reasons.append(reason)
        return found, "" if found else min(reasons, key=_rank)

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
            unsplit=why_whole(form, packing) if 0 < self._config.split_bytes < seen.size else None,
            byte_anchors=form.byte_anchors,
        )


def _seen(path: str, found: StoredObject) -> StoredSeen:
    return StoredSeen(
        path=path, size=found.size, version=found.version, modified_ms=found.modified_ms
    )


def _rank(reason: str) -> int:
    """What tells most comes first: an excluded name would be read without that."""
    return REASONS.index(reason) if reason in REASONS else -1


_NEW = Progress()
