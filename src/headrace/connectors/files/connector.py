"""Files on local disk become records.

Each file is read in order by one slot, unless ``files.split.bytes`` says otherwise. Exactly-once is
supported: an offset names a byte of a file, and says which file it was.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, Plan, PlannedConnector, PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.connectors.files.candidate import Candidate, Decision, Piece, Rules
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import format_of, signature
from headrace.connectors.files.listing import FileSeen, last_line_end, list_files, look_at
from headrace.connectors.files.offsets import check_offsets
from headrace.connectors.files.planning import decide
from headrace.connectors.files.progress import Progress, by_file
from headrace.connectors.files.sharing import shared
from headrace.connectors.files.task import FilesTask
from headrace.sources.extractors.streams import Compression

_LOG = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0
# Floating point must not make a file a moment too young after the wait.
_MARGIN_SECONDS = 0.01


class FilesConnector(PlannedConnector):
    """Lists files, and shares out what is left of them by size."""

    config_class: ClassVar[type[Config]] = FilesConfig
    task_class: ClassVar[type[SourceTask]] = FilesTask

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._unchanged = dict[str, tuple[int, int, int]]()
        self._told = dict[str, str]()

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

        When all that is left are files too young to be finished, and they will be old enough within
        seconds, it waits for that: nothing that lies there is left out of a run that ends.
        """
        known = request.offsets.known()
        plan, ripe_at = self._plan_once(request.slots, known)
        wait = ripe_at - self._clock() if ripe_at is not None else 0.0
        if plan.has_work() or not 0 < wait <= _PATIENCE_SECONDS:
            return plan
        self._sleep(wait + _MARGIN_SECONDS)
        return self._plan_once(request.slots, known)[0]

    def _plan_once(
        self, slots: int, known: Mapping[SourcePartition, SourceOffset]
    ) -> tuple[Plan, float | None]:
        """A plan, and when a file that has to wait will be old enough, if there is one."""
        progress = by_file(known)
        pieces = list[Piece]()
        offsets = dict[SourcePartition, SourceOffset | None]()
        ripe_at = list[float]()
        paths = list_files(self._config.path, recursive=self._config.recursive, known=progress)
        self._check_missing(paths, progress)
        for path in paths:
            decision, ripe = self._decide(path, progress.get(path, Progress()))
            pieces += decision.pieces
            offsets.update(decision.offsets)
            ripe_at += [] if ripe is None else [ripe]
        plan = Plan(
            shares=shared(pieces, slots),
            offsets=offsets,
            total_bytes=sum(piece.weight for piece in pieces),
        )
        return plan, min(ripe_at, default=None)

    def _decide(self, path: str, progress: Progress) -> tuple[Decision, float | None]:
        file = self._look_at(path, progress)
        if file is None:
            return Decision(), None
        candidate = self._candidate(file, progress)
        decision = decide(candidate, progress, self._rules())
        self._tell(path, decision.told)
        if progress.done and not decision.pieces and file.size == progress.size:
            self._unchanged[path] = _signs(file)
        waits = not candidate.settled and _left(candidate, progress) and not decision.pieces
        return decision, file.modified_ns / 1e9 + self._config.min_age_ms / 1000 if waits else None

    def _look_at(self, path: str, progress: Progress) -> FileSeen | None:
        """The file at *path*, or ``None`` when it is gone, or done and unchanged since the last look."""
        if path in self._unchanged and progress.done:
            try:
                status = os.stat(path)  # noqa: PTH116 (hot: once per file and plan)
            except FileNotFoundError:
                return None
            if self._unchanged[path] == (status.st_size, status.st_ino, status.st_mtime_ns):
                return None
        self._unchanged.pop(path, None)
        return look_at(path)

    def _candidate(self, file: FileSeen, progress: Progress) -> Candidate:
        config = self._config
        packed = config.packing(file.path) is not Compression.NONE
        settled = file.age_ms(self._clock()) >= config.min_age_ms
        readable = file.size
        if not packed and (config.follow or not settled) and file.size > progress.anchor:
            readable = last_line_end(
                file.path,
                start=progress.anchor,
                size=file.size,
                at_most=config.max_line_bytes,
            )
        return Candidate(
            file=file,
            format=signature(file.path, config),
            packed=packed,
            settled=settled,
            readable=readable,
            splittable=not packed and format_of(file.path, config) != "csv",
        )

    def _check_missing(self, paths: list[str], progress: Mapping[str, Progress]) -> None:
        present = set(paths)
        for path, each in progress.items():
            if path in present or each.finished or os.path.lexists(path):
                continue
            sentence = f"{path}: The file vanished before it was read to its end."
            if self._config.missing == "fail":
                raise TaskFailedError(
                    f"{sentence} Put it back, remove its offset, or set files.missing=ignore."
                )
            self._tell(path, sentence)

    def _rules(self) -> Rules:
        config = self._config
        return Rules(follow=config.follow, changed=config.changed, split_bytes=config.split_bytes)

    def _tell(self, path: str, sentence: str | None) -> None:
        """Log *sentence* once, not at every plan."""
        if sentence is not None and self._told.get(path) != sentence:
            self._told[path] = sentence
            _LOG.warning("%s: %s", path, sentence)


def _signs(file: FileSeen) -> tuple[int, int, int]:
    return file.size, file.inode, file.modified_ns


def _left(candidate: Candidate, progress: Progress) -> bool:
    """Whether bytes of the file are still to be read, now or when it is older."""
    return not progress.done and (candidate.packed or candidate.file.size > progress.anchor)
