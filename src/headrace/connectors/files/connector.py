"""Files on local disk become records.

Each file is read in order by one slot, unless ``files.split.bytes`` says otherwise. Exactly-once is
supported: an offset names a byte of a file, and says which file it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, Plan, PlannedConnector, PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.connectors.files.candidate import Candidate, Decision, Rules
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import format_of, packing_of, quoted_framing
from headrace.connectors.files.identity import same_object
from headrace.connectors.files.listing import (
    FileSeen,
    last_line_end,
    list_files,
    look_at,
    status_of,
)
from headrace.connectors.files.offsets import check_offsets
from headrace.connectors.files.planning import decide
from headrace.connectors.files.prefix_check import PrefixCheck
from headrace.connectors.files.progress import Progress, by_file
from headrace.connectors.files.row_ahead import RowAhead
from headrace.connectors.files.task import FilesTask
from headrace.sources.extractors.line_framing import Framing
from headrace.sources.extractors.streams import Compression
from headrace.sources.sharing import Piece, shared

_LOG = logging.getLogger(__name__)
# Floating point must not make a file a moment too young after the wait.
_MARGIN_SECONDS = 0.01
_AGAIN_SECONDS = 0.1


class FilesConnector(PlannedConnector):
    """Lists files, and shares out what is left of them by size."""

    config_class: ClassVar[type[Config]] = FilesConfig
    task_class: ClassVar[type[SourceTask]] = FilesTask

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._unchanged = dict[str, tuple[int, int, int]]()
        self._told = dict[str, str]()
        self._prefixes = PrefixCheck()
        self._rows = RowAhead()

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        self._config = FilesConfig.parse(props)

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        check_offsets(offsets)

    def plan(self, request: PlanRequest) -> Plan:
        """List the files and join them with what is known.

        When something is left of files that are too young to be finished, the plan says when the first of
        them will be old enough.
        """
        progress = by_file(request.offsets.known())
        pieces = list[Piece]()
        offsets = dict[SourcePartition, SourceOffset | None]()
        waits = list[float]()
        paths = list_files(
            self._config.path,
            recursive=self._config.recursive,
            known=progress,
            without_match=lambda pattern: self._tell(pattern, _NO_MATCH),
        )
        self._check_missing(paths, progress)
        for path in paths:
            decision, wait = self._decided(path, progress.get(path, Progress()))
            pieces += decision.pieces
            offsets.update(decision.offsets)
            waits += [] if wait is None else [wait]
        return Plan(
            shares=shared(pieces, request.slots),
            offsets=offsets,
            total_bytes=sum(piece.weight for piece in pieces),
            ask_again_after=min(waits, default=None),
        )

    def _decided(self, path: str, progress: Progress) -> tuple[Decision, float | None]:
        """What to do with the file at *path*, and in how many seconds to look at it again, if at all."""
        if self._is_as_it_was(path, progress):
            return Decision(), None
        file = look_at(path)
        candidate = None if file is None else self._candidate(file, progress)
        if file is None or candidate is None:
            self._tell(path, "The file vanished while it was looked at; the next plan decides.")
            return Decision(), _AGAIN_SECONDS
        decision = decide(candidate, progress, self._rules())
        self._tell(path, decision.told)
        judged = candidate.settled and not decision.pieces
        if judged and progress.done and file.size == progress.size:
            self._unchanged[path] = _signs(file)
        return decision, self._wait_for(file) if decision.waits else None

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
        if status is None or signs != (status.st_size, status.st_ino, status.st_mtime_ns):
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
        readable = self._readable(file, quoted, progress.anchor) if growing else file.size
        if readable is None:
            return None
        return Candidate(
            file=file,
            format=form.signature(),
            packed=packed,
            settled=settled,
            readable=readable,
            splittable=not packed and form.splits,
            open_ended=quoted is not None,
            kept=self._is_kept(file, packing, progress, settled=settled),
        )

    def _readable(self, file: FileSeen, quoted: Framing | None, start: int) -> int | None:
        """Up to which byte a growing file may be read from *start*; ``None`` when it is gone.

        *quoted* finds its rows where some line ends are quoted.
        """
        if file.size <= start:
            return file.size
        limit = self._config.max_line_bytes
        if quoted is None:
            return last_line_end(file.path, start=start, size=file.size, at_most=limit)
        # Only its reader knows which line ends are quoted, so it gets all, and leaves the rest.
        found = self._rows.find(file, quoted, start=start, at_most=limit)
        return file.size if found else None if found is None else start

    def _is_kept(
        self, file: FileSeen, packing: Compression, progress: Progress, *, settled: bool
    ) -> bool:
        """Whether *file* begins with what was sent of it, as far as that is worth a look."""
        # While a packed file is young, it may be being replaced by a whole one.
        if packing is not Compression.NONE:
            same = file.size == progress.size and all(
                same_object(file, version) for version in progress.versions
            )
            if not settled or (same and (progress.done or self._config.changed == "fail")):
                return True
        return self._prefixes.holds(file, packing, progress.proofs)

    def _check_missing(self, paths: list[str], progress: Mapping[str, Progress]) -> None:
        present = set(paths)
        for path, each in progress.items():
            if path in present or each.finished or status_of(path) is not None:
                continue
            sentence = f"{path}: The file vanished before it was read to its end."
            if self._config.missing == "fail":
                raise TaskFailedError(f"{sentence} Put it back, or set files.missing=ignore.")
            self._tell(path, sentence)

    def _rules(self) -> Rules:
        config = self._config
        return Rules(follow=config.follow, changed=config.changed, split_bytes=config.split_bytes)

    def _tell(self, path: str, sentence: str | None) -> None:
        """Log *sentence* once, not at every plan."""
        if sentence is not None and self._told.get(path) != sentence:
            self._told[path] = sentence
            _LOG.warning("%s: %s", path, sentence)


_NO_MATCH = "No file matches this pattern of files.path now. Files that come later are read."


def _signs(file: FileSeen) -> tuple[int, int, int]:
    return file.size, file.inode, file.modified_ns
