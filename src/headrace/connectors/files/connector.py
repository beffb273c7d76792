"""Files on local disk and objects of a store become records.

Each file is read in order by one slot, unless ``files.split.bytes`` says otherwise. Exactly-once is
supported: an offset names a place in a file, and says which file it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from headrace.connect.config import Config
from headrace.connect.connector import (
    ExactlyOnceSupport,
    Explained,
    Plan,
    PlannedConnector,
    PlanRequest,
)
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import RecordSchemas
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.connectors.files.candidate import NOTHING, Decision
from headrace.connectors.files.cleanup.cleaner import Cleanup
from headrace.connectors.files.cleanup.cleaning import Cleaning
from headrace.connectors.files.cleanup.cleanups import Cleaner
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.distribution import shares_of
from headrace.connectors.files.explaining import Explaining
from headrace.connectors.files.formats import schemaless_values
from headrace.connectors.files.known_schemas import known_schemas
from headrace.connectors.files.lagging import lags_of
from headrace.connectors.files.local.selection import LocalSelection
from headrace.connectors.files.naming.destinations import Destinations
from headrace.connectors.files.offsets import check_offsets
from headrace.connectors.files.progress import by_file
from headrace.connectors.files.selecting.round import MOST_OBJECTS, Round
from headrace.connectors.files.selecting.selection import Selection
from headrace.connectors.files.stored.selection import StoreSelection
from headrace.connectors.files.task import FilesTask
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.listings import Listings, ResumableListing
from headrace.connectors.files.tracking.offsets_below_mark import (
    NoOffsets,
    check_below_mark,
    removed_marks,
)
from headrace.connectors.files.tracking.tracking import Tracking
from headrace.sources.sharing import Piece
from headrace.sources.told_once import ToldOnce

_LOG = logging.getLogger(__name__)
_UNSPLIT = "{path} has more bytes and is read whole. {reason} There may be others like it; headrace explain tells of each."


class FilesConnector(PlannedConnector):
    """Lists files, and shares out what is left of them."""

    config_class: ClassVar[type[Config]] = FilesConfig
    task_class: ClassVar[type[SourceTask]] = FilesTask
    files_config: ClassVar[type[FilesConfig]] = FilesConfig
    """Reads the configuration; another connector's may be written with other keys."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        cleaner: Callable[[FilesConfig], Cleaner] = Cleanup,
    ) -> None:
        self._clock = clock
        self._ticks = ticks
        self._cleaner = cleaner
        self._told = ToldOnce(_LOG)
        self._cleaning: Cleaning | None = None
        self._unsplit: str | None = None
        self._heard: dict[str, str] | None = None

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        self._config = self.files_config.parse(props)
        self._selection = self._selected(self._config)
        self._tracking = Tracking(
            self._config, self._selection, ticks=self._ticks, clock=self._clock, tell=self._tell
        )
        self._listings = Listings(self._tracking, self._selection, ticks=self._ticks)
        self._destinations = Destinations(self._config)
        if self._config.after_commit != "keep":
            self._cleaning = Cleaning(
                self._config,
                tell=self._tell,
                selects=self._selection.selects,
                cleaner=self._cleaner,
            )

    def stop(self) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        if self._cleaning is not None:
            self._cleaning.stop()

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED

    def schemaless(self, props: Mapping[str, str]) -> str | None:
        """See :class:`~headrace.connect.connector.SourceConnector`; told by the settings and ``files.path``."""
        return schemaless_values(self.files_config.parse(props))

    def record_schemas(self, props: Mapping[str, str]) -> RecordSchemas | None:
        """See :class:`~headrace.connect.connector.SourceConnector`; told by ``files.schema``."""
        return known_schemas(self.files_config.parse(props))

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        check_offsets(offsets)
        check_below_mark(offsets, NoOffsets())

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """See :class:`~headrace.connect.connector.SourceConnector`; heeds the marks that are stored, too."""
        context = getattr(self, "context", None)
        check_below_mark(offsets, NoOffsets() if context is None else context.offsets)
        for place in removed_marks(offsets):
            _LOG.warning(
                "The mark of %s is removed: what has no offset there is read again.", place
            )
        return False

    def lag(
        self, props: Mapping[str, str], offsets: Mapping[SourcePartition, SourceOffset]
    ) -> Mapping[SourcePartition, int]:
        """See :class:`~headrace.connect.connector.SourceConnector`: bytes, of files that have offsets."""
        config = self.files_config.parse(props)
        return dict(lags_of(by_file(offsets), config, self._selected(config).measured))

    def plan(self, request: PlanRequest) -> Plan:
        """List the files and join them with what is known.

        When something is left of files that are too young to be finished, the plan says when the first of
        them will be old enough. A round that is full interrupts the listing: where all that it took is read, the
        next one goes on there. That nothing is left is only said after a listing from the beginning. What
        comes after the commit is begun here and done on other threads. Entries that are of no use any more
        are removed.
        """
        known = by_file(request.offsets.known())
        going_on = self._listings.going_on(known)
        if going_on is not None:
            plan = self._planned(request, going_on)
            if plan.has_work() or plan.offsets:
                return plan
        return self._planned(request, self._listings.begun(request.offsets, known))

    def _planned(self, request: PlanRequest, listing: ResumableListing) -> Plan:
        cleaning = None if self._cleaning is None else self._cleaning.planned(listing.asked)
        decisions = listing.decisions()
        taken = self._round()
        offsets = dict[SourcePartition, SourceOffset | None]()
        waits = list[float]()
        for path, decision in cleaning.decisions(decisions) if cleaning else decisions:
            if decision is NOTHING:
                continue
            if decision.pieces:
                # Told before a slot would: a name that says no topic is wrong for all records of the file.
                self._destinations.of(path)
                if not taken.take(path, decision.pieces):
                    listing.give_back(path, decision)
                    break
            self._tell(path, decision.told)
            self._tell_unsplit(path, decision)
            offsets.update(decision.offsets)
            waits += [] if decision.again_after is None else [decision.again_after]
        self._check_missing(listing.unfinished())
        offsets.update(listing.offsets(is_idle=not taken.pieces and not offsets))
        if cleaning is not None:
            offsets.update(cleaning.offsets(idle=not taken.pieces and not offsets))
            again_after = cleaning.waits()
            waits += [] if again_after is None else [again_after]
        self._listings.keep(listing, taken.pieces)
        return Plan(
            shares=self.share_out(taken.pieces, request.slots),
            offsets=offsets,
            total_bytes=taken.total_bytes,
            objects=taken.objects,
            ask_again_after=min(waits, default=None),
            has_more=taken.has_more,
        )

    def explain(self, request: PlanRequest) -> Iterator[Explained]:
        """See :class:`~headrace.connect.connector.PlannedConnector`: what is there and is not read as well.

        What it tells of an object is not logged.
        """
        asked = Asked(by_file(request.offsets.known()))
        listing = self._tracking.explained(request.offsets, asked)
        self._heard = heard = dict[str, str]()
        explaining = Explaining(
            self._config, listing, self._destinations, share_out=self.share_out, heard=heard
        )
        try:
            return iter(list(explaining.objects(request, self._round())))
        finally:
            self._heard = None
            for name, sentence in heard.items():
                self._tell(name, sentence)

    def share_out(self, pieces: Sequence[Piece], slots: int) -> list[list[Split]]:
        """At most *slots* non-empty shares of *pieces*, as ``files.distribution`` says."""
        return shares_of(self._config.distribution, pieces, slots, self._partition_of)

    def _partition_of(self, path: str) -> int | None:
        return self._destinations.of(path).partition

    def _round(self) -> Round:
        config = self._config
        # A file that always grows takes part in each round, and would keep others from ever being read.
        most = 0 if config.follow else MOST_OBJECTS
        return Round(
            max_objects=config.max_objects_per_round or most, max_bytes=config.max_bytes_per_round
        )

    def _selected(self, config: FilesConfig) -> Selection:
        if config.root is None:
            return LocalSelection(config, clock=self._clock, tell=self._tell)
        return StoreSelection(config, config.root, config.open_store(config.root), tell=self._tell)

    def _check_missing(self, unfinished: Iterable[str]) -> None:
        for path in unfinished:
            if not self._selection.has_lost(path):
                continue
            sentence = "The file vanished before it was read to its end."
            if self._config.missing == "fail":
                advice = "Put it back, or set files.missing=ignore."
                raise TaskFailedError(f"{path}: {sentence} {advice}")
            self._tell(path, sentence)

    def _tell_unsplit(self, path: str, decision: Decision) -> None:
        if decision.unsplit is not None and self._unsplit is None:
            self._unsplit = _UNSPLIT.format(path=path, reason=decision.unsplit)
            self._tell("files.split.bytes", self._unsplit)

    def _tell(self, path: str, sentence: str | None) -> None:
        """Log *sentence* once, not at every plan, or keep it for what is explained."""
        if self._heard is None:
            self._told.tell(path, sentence)
        elif sentence is not None:
            self._heard[path] = sentence
