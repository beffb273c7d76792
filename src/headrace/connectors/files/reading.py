"""One split of a plan, read: a file or a range of one, as batches whose offsets can be resumed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.partition import OffsetValue, SourceOffset
from headrace.connect.task import Split
from headrace.connectors.files.batches import SplitBatches
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.counts import check_counted
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.file_opener import FileOpener
from headrace.connectors.files.formats import format_of
from headrace.connectors.files.opening import OpenedSplit, SplitOpening
from headrace.connectors.files.prefix_fingerprint import DIGEST
from headrace.connectors.files.progress import OBJECT_KEY, is_range, number, path_of
from headrace.connectors.files.records.last import LastRecord
from headrace.formats.damage import DamagedObjectError
from headrace.formats.streams import PackingDamage
from headrace.formats.unreadable import UnreadableRecordError
from headrace.stores.errors import ObjectChangedError, ObjectGoneError

_LOG = logging.getLogger(__name__)


class SplitReader:
    """Reads one split that *opener* opens from its offset to the end that was planned.

    *stopping* is asked while more is read than the next records.
    """

    def __init__(
        self, split: Split, config: FilesConfig, opener: FileOpener, *, stopping: Callable[[], bool]
    ) -> None:
        self._split = split
        self._opener = opener
        self._stopping = stopping
        self._details = SplitDetails.of(split.details)
        self._path = path_of(split.partition)
        self._format = format_of(self._path, config)
        self._opening = SplitOpening(split, config, opener, self._format)
        self._batches = SplitBatches(split, config, self._format)
        self._last = LastRecord(self._batches.saying_last) if config.tells_last else None
        self._open_split: OpenedSplit | None = None
        self._lost = False
        self._packing_damage: PackingDamage | None = None
        self._has_checked_packing = False

    @property
    def packed(self) -> bool:
        """Whether its file is compressed: to go on inside it means to unpack it from its beginning."""
        return self._open_split is not None and self._open_split.packed

    @property
    def topic(self) -> str:
        """Where its records go."""
        return self._batches.topic

    def open(self) -> bool:
        """Open the file; ``False`` when it is not the one that was planned, for the next plan to judge.

        Raises :class:`~headrace.formats.damage.DamagedObjectError` when it is damaged before the
        place where reading goes on, :class:`~headrace.connect.errors.TaskFailedError` when it cannot be read,
        and :class:`~headrace.connect.errors.RetriableError` when a store is away.
        """
        try:
            self._open_split = self._opening.open()
        except (ObjectChangedError, ObjectGoneError):
            return False
        except RecordError as error:
            raise DamagedObjectError(error) from error
        except OSError as error:
            raise self._opener.failure(self._path, error) from error
        return self._open_split is not None

    def next_batches(self) -> list[SourceBatch] | None:
        """The next records; ``None`` after the last. Raises what its reader raises, and as :meth:`open`.

        After a ``RetriableError`` another reader has to go on behind what was returned. Where an object of
        a store is no longer the one that was planned, there are no more records: the next plan judges it.
        """
        if self._last is None:
            return self._read()
        return self._last.next_batches(self._read, self._is_at_end)

    def _read(self) -> list[SourceBatch] | None:
        opened = self._opened()
        try:
            chunk = opened.reader.next_chunk()
        except (ObjectChangedError, ObjectGoneError) as error:
            _LOG.warning("%s The next plan decides.", error)
            self._lost = True
            return None
        except UnreadableRecordError as error:
            position = None if self._format.sealed else error.record.behind.anchor
            self._check_packing(error, position=position)
            raise self._passed(error) from error
        except DamagedObjectError as damage:
            self._check_packing(damage, position=None)
            raise
        except OSError as error:
            raise self._opener.failure(self._path, error) from error
        if chunk is None:
            return None
        done = self._done() if chunk.last and self._is_at_end() else None
        return [*self._batches.of(chunk, opened, done=done)]

    def end(self) -> SourceOffset | None:
        """After the last record: the offset that passes all there was, or ``None`` if it was cut short."""
        opened = self._opened()
        if self._lost or opened.reader.cut_short:
            return None
        place = opened.reader.place
        if not self._has_counted(place.record_count):
            return None
        constants = {
            **self._batches.constants(opened.reader.constants()),
            "anchor": place.anchor,
            "recordCount": place.record_count,
            **opened.fingerprint(place.anchor),
        }
        return {**constants, **self._done()} if self._whole(place.anchor) else constants

    def _has_counted(self, found: int) -> bool:
        """Whether there were as many records as the offset counts; raises where there will not be any more."""
        if OBJECT_KEY in self._split.partition:
            # Aiven's S3 source sends nothing of an object that a shorter one has replaced, and tells no one.
            self._tell_replaced(found)
            return True
        if self._details.settled and self._details.tail:
            check_counted(self._path, self._split.offset, found)
        return number(self._split.offset, "recordCount") <= found

    def _tell_replaced(self, found: int) -> None:
        counted = number(self._split.offset, "recordCount")
        if counted > found:
            _LOG.warning(
                "%s: Its offset counts %d records and it has %d, so that it was replaced by a shorter one. "
                "Nothing of it is sent.",
                self._path,
                counted,
                found,
            )

    def close(self) -> None:
        """Close the file."""
        if self._open_split is not None:
            self._open_split.reader.close()

    def _check_packing(
        self, error: UnreadableRecordError | DamagedObjectError, *, position: int | None
    ) -> None:
        """Raise ``DamagedObjectError`` where *error* is what is left of a record by damage to what it was packed in.

        That shows only at a checksum behind it, for which the file is unpacked once more, as far as that is quick, and
        once. *position* of the unpacked text is behind the record, where that is known.
        """
        if not self.packed or (isinstance(error, DamagedObjectError) and error.packing):
            return
        if not self._has_checked_packing:
            self._packing_damage = self._found_damage()
            self._has_checked_packing = True
        damage = self._packing_damage
        if damage is not None and (position is None or position > damage.sound):
            place = error.position or f"record {self._opened().reader.place.record_count}"
            raise DamagedObjectError(damage.error.located(self._path, place)) from error

    def _found_damage(self) -> PackingDamage | None:
        try:
            return self._opening.packing_damage(self._check_stopping)
        except (ObjectChangedError, ObjectGoneError):
            return None
        except OSError as error:
            raise self._opener.failure(self._path, error) from error

    def _check_stopping(self) -> None:
        # What the record is about is left to the next one who reads it.
        if self._stopping():
            raise RetriableError(
                f"{self._path}: It is not unpacked to its end: the task is stopping."
            )

    def _passed(self, error: UnreadableRecordError) -> RecordError:
        """*error* with the offset behind its record."""
        behind = error.record.behind
        offset = {
            **self._batches.constants(error.record.constants),
            "recordCount": behind.record_count,
            "anchor": behind.anchor,
            "skip": behind.skip,
            **self._opened().fingerprint(behind.anchor),
        }
        return error.with_offset(
            self._split.partition, offset, topic=self.topic, version=self._details.version
        )

    def _done(self) -> dict[str, OffsetValue]:
        """What the last offset says besides, of all bytes of the file where its fingerprints do not."""
        done = self._batches.done()
        if is_range(self._split.partition) or not (self.packed or self._format.sealed):
            return done
        try:
            digest = self._opener.digest(self._path, self._details)
        except OSError as error:
            raise self._opener.failure(self._path, error) from error
        return done if digest is None else {**done, DIGEST: digest}

    def _opened(self) -> OpenedSplit:
        if self._open_split is None:
            raise RuntimeError("the split was not opened")
        return self._open_split

    def _is_at_end(self) -> bool:
        reader = self._opened().reader
        return not self._lost and not reader.cut_short and self._whole(reader.place.anchor)

    def _whole(self, position: int) -> bool:
        """Whether *position* is where this split's partition ends, and the file is still what it was."""
        details = self._details
        at_file_end = self.packed or self._format.sealed or position >= details.size
        if is_range(self._split.partition):
            reached = self._format.sealed or position >= (details.stop or 0)
            at_end = reached or (details.tail and at_file_end)
            return at_end and self._opener.is_as_planned(self._path, details, grown=True)
        if not details.settled or not details.tail or not at_file_end:
            return False
        return self._opener.is_as_planned(self._path, details, grown=False)
