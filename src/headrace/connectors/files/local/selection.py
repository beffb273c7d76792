"""The files on local disk that a configuration selects, each looked at and decided about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.candidate import Candidate, Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import format_of, packing_of, quoted_framing
from headrace.connectors.files.local.awaited import Awaited
from headrace.connectors.files.local.complete_row_probe import CompleteRowProbe
from headrace.connectors.files.local.file_seen import (
    FileSeen,
    look_at,
    status_of,
    touched_ns,
)
from headrace.connectors.files.local.listing import (
    LOST_FILE,
    LOST_FOLDER,
    NO_FILES,
    VANISHED,
    list_files,
)
from headrace.connectors.files.local.path_cache import PathCache
from headrace.connectors.files.local.prefix_check import PrefixCheck
from headrace.connectors.files.local.ready import Ready, last_line_end
from headrace.connectors.files.local.torn import is_torn_at
from headrace.connectors.files.local.unopenable import (
    is_escaped,
    of_unopenable,
    why_unopenable,
)
from headrace.connectors.files.measured import Measured
from headrace.connectors.files.planning import decide
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.selecting.local_paths import local_selector
from headrace.connectors.files.selecting.markers import Markers
from headrace.connectors.files.selecting.observing import UNOBSERVED, ListingObserver
from headrace.connectors.files.selecting.scope import Failed, LeftOut, Scope, fail, unheard
from headrace.connectors.files.selecting.selection import EventListener, rules_of
from headrace.connectors.files.selecting.unknown_extensions import UnknownExtensionFilter
from headrace.connectors.files.splitting import why_whole
from headrace.formats.line_framing import Framing
from headrace.formats.streams import Compression

# Floating point must not make a file a moment too young after the wait.
_MARGIN_SECONDS = 0.01
_AGAIN_SECONDS = 0.1
_COPIES = (
    "Files that were read to their end lie there under other inodes, as after a restore. The driver compares them with what "
    "was read, at most 1 GiB in each round; until that is done nothing is sent of them."
)
_NO_MATCH = "No file matches this pattern of files.path now. Files that come later are read."


class LocalSelection:
    """See :class:`~headrace.connectors.files.selecting.selection.Selection`.

    Files may be written while they are looked at: one that is too young to be finished is read as far as
    it is sure, and *clock*, in seconds since 1970, says how old it is.
    """

    def __init__(
        self, config: FilesConfig, *, clock: Callable[[], float], tell: EventListener
    ) -> None:
        self._config = config
        self._clock = clock
        self._tell = tell
        self._unchanged = PathCache[tuple[int, int, int]]()
        self._prefixes = PrefixCheck()
        self._rows = CompleteRowProbe()
        self._scope = Scope(config)
        self._selectors = tuple(map(local_selector, config.path))
        self._markers = Markers(config.marker, lambda path: status_of(path) is not None)
        self._unknown_extensions = UnknownExtensionFilter(config, tell)
        self._awaited = Awaited(config, self._tell_at_first)
        self._waits_for_last = config.tells_last
        self._has_listed = False

    def decisions(
        self,
        known: Mapping[str, Progress],
        *,
        left_out: LeftOut = unheard,
        failed: Failed = fail,
        observer: ListingObserver = UNOBSERVED,
    ) -> Iterator[tuple[str, Decision]]:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""

        def is_left_out(path: str, reason: str) -> None:
            missed = self._is_missed(path, reason, observer) and reason != VANISHED
            if missed or self._is_no_file(path, reason):
                self._tell(path, reason)
            left_out(path, reason)

        self._markers.begin()
        self._unknown_extensions.begin()
        self._prefixes.begin()
        paths = list_files(
            self._config.path,
            recursive=self._config.recursive,
            exclusion=self._config.exclusion,
            known=self._awaited.beside(known),
            without_match=lambda pattern: self._tell_unmatched(pattern, known),
            left_out=is_left_out,
        )
        self._has_listed = True
        for each in (self._unchanged, self._prefixes, self._rows):
            each.keep(paths)
        for path in paths:
            observer.saw(path)
            try:
                reason, decision = self._judged(path, known.get(path, Progress()), observer)
            except TaskFailedError as error:
                failed(path, error)
                continue
            if reason is None:
                yield path, decision
            else:
                left_out(path, reason)
        self._unknown_extensions.ended(known, failed, lists_all=True)

    def has_lost(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        return path.startswith("/") and status_of(path) is None

    def forget_markers(self) -> None:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        self._markers.begin()

    def selects(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        if not path.startswith("/") or self._scope.against_name(path) is not None:
            return False
        key, recursive = path.removeprefix("/"), self._config.recursive
        return any(each.selects(key, recursive=recursive) for each in self._selectors)

    def measured(self, path: str) -> Measured | None:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        if not path.startswith("/") or is_escaped(path) or status_of(path) is None:
            return None
        file = look_at(path)
        if file is None:
            return None
        plain = packing_of(path, file.head, self._config) is Compression.NONE
        return Measured(file=file, by_bytes=plain and format_of(path, self._config).byte_anchors)

    def gone(self, paths: Sequence[str]) -> Sequence[str]:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`. Looks at each."""
        return [path for path in paths if self.has_lost(path)]

    def _tell_unmatched(self, pattern: str, known: Mapping[str, Progress]) -> None:
        """Tell of *pattern* where nothing matched it at first; what is known was there once."""
        if self._has_listed:
            return
        selector, recursive = local_selector(pattern), self._config.recursive
        keys = (path.removeprefix("/") for path in known)
        if not any(selector.selects(key, recursive=recursive) for key in keys):
            self._tell(pattern, _NO_MATCH)

    def _tell_at_first(self, path: str, sentence: str) -> None:
        if not self._has_listed:
            self._tell(path, sentence)

    def _is_missed(self, path: str, reason: str, observer: ListingObserver) -> bool:
        """Whether what *path* leads to might be read if it were there, and *observer* has not seen it before."""
        if reason == LOST_FILE:
            return self._scope.against_name(path) is None and observer.missed(path)
        return reason in {VANISHED, LOST_FOLDER} and observer.missed(f"{path}/")

    def _is_no_file(self, path: str, reason: str) -> bool:
        """Whether *path* might be read if it were a file, as somebody may think who writes into a FIFO."""
        return reason in NO_FILES and self._scope.against_name(path) is None

    def _judged(
        self, path: str, progress: Progress, observer: ListingObserver
    ) -> tuple[str | None, Decision]:
        """Why the file at *path* is not read at all, or what is decided about it."""
        reason = self._scope.against_name(path) or self._passed(path, observer)
        if reason is not None or self._is_as_it_was(path, progress):
            return reason, Decision()
        reason = self._unknown_extensions.against(path, progress)
        if reason is not None:
            return reason, Decision()
        # Before the file: what its marker says holds for what is there behind it.
        marker = self._markers.awaited_by(path) if progress.is_new else None
        try:
            file = None if is_escaped(path) else look_at(path)
        except TaskFailedError:
            if why_unopenable(path) is None:
                raise
            file = None
        unopenable = why_unopenable(path) if file is None else None
        if unopenable is not None:
            form = format_of(path, self._config).signature()
            return None, of_unopenable(path, unopenable, progress, form)
        if file is not None:
            reason = self._scope.against_time(file.modified_ms)
        if reason is not None:
            return reason, Decision()
        if marker is not None and file is not None:
            self._markers.tell(path, marker, self._tell)
            return None, Decision(waits=True, marker=marker)
        return None, self._decided(path, file, progress)

    def _passed(self, path: str, observer: ListingObserver) -> str | None:
        """Why the file at *path* counts as read; where its time is known for that, it must be in scope first."""
        if not observer.wants_time(path):
            return observer.passed(path, None)
        modified_ms = _modified_ms(path)
        reason = None if modified_ms is None else self._scope.against_time(modified_ms)
        return reason or observer.passed(path, modified_ms)

    def _decided(self, path: str, file: FileSeen | None, progress: Progress) -> Decision:
        candidate = None if file is None else self._candidate(file, progress)
        if file is None or candidate is None:
            told = "The file vanished while it was looked at; the next plan decides."
            return Decision(told=told, again_after=_AGAIN_SECONDS)
        decision = decide(candidate, progress, rules_of(self._config))
        if self._waits_for_last and decision.pieces and not candidate.settled:
            # Only in a file that is finished there is a last record.
            decision = Decision(waits=True)
        # Offsets that are not written in the end are to be decided again.
        left = decision.pieces or decision.offsets or decision.waits
        if candidate.settled and not left and progress.done and file.size == progress.size:
            self._unchanged[path] = _signs(file)
        if not decision.waits:
            return decision
        seconds = self._wait_for(file)
        # What is old enough waits for another look, which may be at once.
        return replace(decision, again_after=seconds if seconds > 0 else _AGAIN_SECONDS)

    def _wait_for(self, file: FileSeen) -> float:
        """The seconds until *file* will be old enough, if it does not change any more."""
        age_ms, min_age_ms = file.age_ms(self._clock()), self._config.min_age_ms
        if age_ms < 0:
            self._tell(
                file.path,
                "By this machine's clock the file was changed in the future. It is read to its end when "
                f"that is {min_age_ms} ms past (files.min.age.ms). Set its time, for example with touch.",
            )
        return (min_age_ms - age_ms) / 1000 + _MARGIN_SECONDS

    def _is_as_it_was(self, path: str, progress: Progress) -> bool:
        """Whether the file at *path* is done and unchanged since the last look."""
        signs = self._unchanged.pop(path, None)
        if signs is None or not progress.done:
            return False
        status = status_of(path)
        if status is None or signs != (status.st_size, status.st_ino, touched_ns(status)):
            return False
        self._unchanged[path] = signs
        return True

    def _candidate(self, file: FileSeen, progress: Progress) -> Candidate | None:
        """What is to be known of *file* to decide about it, or ``None`` when it is gone."""
        config = self._config
        form = format_of(file.path, config)
        packing = packing_of(file.path, file.head, config)
        packed = form.sealed or packing is not Compression.NONE
        settled = file.age_ms(self._clock()) >= config.min_age_ms
        growing = not packed and (config.follow or not settled)
        quoted = quoted_framing(form) if growing else None
        ready = Ready(stop=file.size)
        if growing:
            # What is shorter than what was read is another file, of which everything is to be read.
            start = progress.anchor if file.size >= progress.anchor else 0
            ready = self._ready(file, quoted, start)
        if ready is None:
            return None
        copied = self._is_copy(file, progress, packed=packed, settled=settled)
        return Candidate(
            file=file,
            format=form.signature(),
            packed=packed,
            settled=settled,
            readable=ready.stop,
            splittable=packing is Compression.NONE and form.splits,
            unsplit=why_whole(form, packing) if 0 < config.split_bytes < file.size else None,
            byte_anchors=form.byte_anchors,
            open_ended=ready.open_ended,
            kept=copied is not False or self._is_kept(file, packing, progress, settled=settled),
            copied=copied,
            torn=not packed and progress.done and is_torn_at(file, progress),
        )

    def _ready(self, file: FileSeen, quoted: Framing | None, start: int) -> Ready | None:
        """How far a growing file may be read from *start*; ``None`` when it is gone.

        *quoted* finds its rows where some line ends are quoted.
        """
        if file.size <= start:
            return Ready(stop=file.size, open_ended=quoted is not None)
        limit = self._config.max_line_bytes
        if quoted is None:
            return last_line_end(file.path, start=start, size=file.size, at_most=limit)
        # Only its reader knows which line ends are quoted, so it gets all, and leaves the rest.
        found = self._rows.find(file, quoted, start=start, at_most=limit)
        if found is None:
            return None
        return Ready(stop=file.size if found else start, open_ended=True)

    def _is_kept(
        self, file: FileSeen, packing: Compression, progress: Progress, *, settled: bool
    ) -> bool:
        """Whether *file* begins with what was sent of it, as far as that is worth a look."""
        # While a packed file is young, it may be being replaced by a whole one.
        if packing is not Compression.NONE:
            in_quarantine = progress.quarantined is not None
            as_long = file.size == progress.size or (in_quarantine and file.size > progress.size)
            same = as_long and all(file.is_still(version) for version in progress.versions)
            closed = progress.done or in_quarantine
            if not settled or (same and (closed or self._config.changed == "fail")):
                return True
        return self._prefixes.holds(file, packing, progress.fingerprints)

    def _is_copy(
        self, file: FileSeen, progress: Progress, *, packed: bool, settled: bool
    ) -> bool | None:
        """Whether *file* is another one than was read to its end, and has all its bytes; ``None``: not known yet."""
        digest = progress.whole_digest(packed=packed)
        if digest is None or file.size != progress.size:
            return False
        if all(map(file.is_still, progress.versions)):
            return False
        if not settled:
            # It may be being written, in a place that was made as long as it will be.
            return None
        found = self._prefixes.is_copy(file, digest, packed=packed)
        if self._prefixes.is_exhausted:
            self._tell("files.changed", _COPIES)
        return found


def _modified_ms(path: str) -> int | None:
    status = status_of(path)
    return None if status is None else status.st_mtime_ns // 1_000_000


def _signs(file: FileSeen) -> tuple[int, int, int]:
    return file.size, file.inode, file.touched_ns
