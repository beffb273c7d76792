"""One split of a plan, read: a file or a range of one, as batches whose offsets can be resumed."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import FileIO

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.partition import OffsetValue, SourceOffset
from headrace.connect.task import Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.formats import format_of, packing_of, packing_told
from headrace.connectors.files.local.witness import Witness, open_witness
from headrace.connectors.files.naming.destinations import Destinations
from headrace.connectors.files.naming.last_record import LastRecord
from headrace.connectors.files.naming.record_facts import LAST
from headrace.connectors.files.naming.record_fields import RecordFields, says_last_field
from headrace.connectors.files.naming.record_headers import RecordHeaders, says_last
from headrace.connectors.files.naming.record_schema import RecordSchema
from headrace.connectors.files.place import Place
from headrace.connectors.files.planning import CHANGED_ADVICE, REPLACED
from headrace.connectors.files.progress import CLEANUP, PENDING, number, path_of
from headrace.connectors.files.proof import CHECKED, CHECKSUM, proof_of
from headrace.connectors.files.stores.errors import ObjectChangedError, ObjectGoneError
from headrace.connectors.files.tail import behind_line_end
from headrace.sources.extractors.blocks import Span
from headrace.sources.extractors.chunk import Chunk, Resume
from headrace.sources.extractors.damage import DamagedObjectError
from headrace.sources.extractors.format import ObjectInput, ReadLimits
from headrace.sources.extractors.object_reader import ObjectReader
from headrace.sources.extractors.streams import Compression
from headrace.sources.extractors.unreadable import UnreadableRecordError

_LOG = logging.getLogger(__name__)
_RANGED = "from"
_UNPACKED = " of the unpacked text"


class SplitReader:
    """Reads one split of *place* from its offset to the end that was planned."""

    def __init__(self, split: Split, config: FilesConfig, place: Place) -> None:
        self._split = split
        self._config = config
        self._place = place
        self._details = SplitDetails.of(split.details)
        self._path = path_of(split.partition)
        self._packing = Compression.NONE
        self._format = format_of(self._path, config)
        self._goes_to = Destinations(config).of(self._path)
        self._headers = RecordHeaders(
            config.headers, self._path, self._details, has_bytes=not self._format.sealed
        )
        self._schema = RecordSchema(config.schema_text, self._path)
        self._fields = RecordFields(
            config.fields, self._path, self._details, has_bytes=not self._format.sealed
        )
        self._last = LastRecord(self._saying_last) if config.tells_last else None
        self._reader: ObjectReader | None = None
        self._witness: Witness | None = None
        self._lost = False

    @property
    def packed(self) -> bool:
        """Whether the file is compressed, so that going on inside it means unpacking it from its beginning."""
        return self._packing is not Compression.NONE

    @property
    def topic(self) -> str:
        """Where its records go."""
        return self._goes_to.topic

    def open(self) -> bool:
        """Open the file; ``False`` when it is not the one that was planned, for the next plan to judge.

        Raises :class:`~headrace.sources.extractors.damage.DamagedObjectError` when it is damaged before the
        place where reading goes on, :class:`~headrace.connect.errors.TaskFailedError` when it cannot be read,
        and :class:`~headrace.connect.errors.RetriableError` when a store is away.
        """
        try:
            return self._open()
        except (ObjectChangedError, ObjectGoneError):
            return False
        except RecordError as error:
            raise DamagedObjectError(error) from error
        except OSError as error:
            raise self._place.failure(self._path, error) from error

    def _open(self) -> bool:
        told = packing_told(self._path, self._config)
        opened = self._place.open(self._path, self._details, with_head=told is None)
        if opened is None:
            return False
        raw = opened.raw
        self._packing = packing_of(self._path, opened.head, self._config)
        offset = self._split.offset or {}
        resume = self._resume()
        if self._details.tailed:
            resume = behind_line_end(raw, resume, self._path)
        # What is in a store is known by its version, and so is a file that is only read when it is finished.
        if isinstance(raw, FileIO) and not self._format.sealed:
            self._witness = self._witnessed(raw, resume)
            if self._witness is None:
                raw.close()
                return self._left_to_the_plan()
        self._reader = self._format.reader(
            ObjectInput(
                native_key=self._path, raw=raw, compression=self._packing, stream=self._witness
            ),
            span=self._span(resume),
            resume=resume,
            limits=ReadLimits(
                rows=self._config.batch_max_rows,
                chunk_bytes=self._config.batch_max_bytes,
                record_bytes=self._config.max_line_bytes,
                record_key="files.max.line.bytes",
            ),
            constants=offset,
        )
        return True

    def next_batches(self) -> list[SourceBatch] | None:
        """The next records; ``None`` after the last. Raises what its reader raises, and as :meth:`open`.

        After a ``RetriableError`` another reader has to go on behind what was returned. Where an object of
        a store is no longer the one that was planned, there are no more records: the next plan judges it.
        """
        if self._last is None:
            return self._read()
        return self._last.next_batches(self._read, self._is_at_end)

    def _read(self) -> list[SourceBatch] | None:
        try:
            chunk = self._opened().next_chunk()
        except (ObjectChangedError, ObjectGoneError) as error:
            _LOG.warning("%s The next plan decides.", error)
            self._lost = True
            return None
        except UnreadableRecordError as error:
            raise self._passed(error) from error
        except OSError as error:
            raise self._place.failure(self._path, error) from error
        return None if chunk is None else list(self._batches(chunk))

    def end(self) -> SourceOffset | None:
        """After the last record: the offset that passes all there was, or ``None`` if it was cut short."""
        reader = self._opened()
        if self._lost or reader.cut_short:
            return None
        place = reader.place
        moving = {"anchor": place.anchor, "recordCount": place.record_count}
        moving |= self._proof(place.anchor)
        constants = {**self._constants(reader.constants()), **moving}
        return {**constants, **self._done()} if self._whole(place.anchor) else constants

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()

    def _passed(self, error: UnreadableRecordError) -> RecordError:
        """*error* with the offset behind its record."""
        behind = error.record.behind
        offset = {
            **self._constants(error.record.constants),
            "recordCount": behind.record_count,
            "anchor": behind.anchor,
            "skip": behind.skip,
            **self._proof(behind.anchor),
        }
        return error.with_offset(
            self._split.partition, offset, topic=self._goes_to.topic, version=self._details.version
        )

    def _proof(self, anchor: int) -> dict[str, int]:
        if self._witness is None:
            return {}
        proof = self._witness.proof_at(anchor)
        return {CHECKED: proof.checked, CHECKSUM: proof.checksum}

    def _opened(self) -> ObjectReader:
        if self._reader is None:
            raise RuntimeError("the split was not opened")
        return self._reader

    def _witnessed(self, raw: FileIO, resume: Resume) -> Witness | None:
        """The bytes to read, or ``None`` when the file does not begin with what was sent of it."""
        config = self._config
        try:
            return open_witness(
                raw,
                self._packing,
                self._first_byte(resume),
                proof=proof_of(self._split.offset),
                # What is read ahead, and the rows before that.
                keep=2 * (config.max_line_bytes + 2 * config.batch_max_bytes)
                + config.looks_ahead_bytes,
            )
        except RecordError as error:
            raw.close()
            raise error.located(self._path, f"before byte {resume.anchor}{_UNPACKED}") from error
        except OSError:
            raw.close()
            raise

    def _left_to_the_plan(self) -> bool:
        # With `fail`, plans trust the inode and size of a packed file, to unpack it here only.
        if self.packed and self._config.changed == "fail":
            raise TaskFailedError(f"{self._path}: {REPLACED} {CHANGED_ADVICE}")
        return False

    def _resume(self) -> Resume:
        offset = self._split.offset
        count = number(offset, "recordCount")
        if offset is None or "anchor" not in offset:
            # An entry with only a count was set by a person, and means "skip so many records".
            return Resume(anchor=self._details.start, skip=count, record_count=count)
        return Resume(
            anchor=number(offset, "anchor"), skip=number(offset, "skip"), record_count=count
        )

    @property
    def _seeks(self) -> bool:
        return self._details.seek and "anchor" not in (self._split.offset or {})

    def _first_byte(self, resume: Resume) -> int:
        return resume.anchor - 1 if self._seeks else resume.anchor

    def _span(self, resume: Resume) -> Span:
        return Span(
            start=self._details.start if self._format.sealed else resume.anchor,
            stop=self._details.stop,
            limit=self._details.limit,
            take_tail=self._details.tail and not self._details.open_ended,
            seek_row=self._seeks,
        )

    def _batches(self, chunk: Chunk) -> Iterator[SourceBatch]:
        """One batch; or two, when the last record is the one whose offset says that all was read."""
        constants = self._constants(chunk.constants)
        reader = self._opened()
        at_end = chunk.last and not reader.cut_short
        moving = {
            "recordCount": pa.array(chunk.counts),
            "anchor": pa.array(chunk.anchors),
            "skip": pa.array(chunk.skips),
            **({} if self._witness is None else self._witness.columns(chunk.anchors)),
        }
        if not at_end or not self._whole(reader.place.anchor):
            yield self._batch(chunk, constants, moving, rows=slice(None))
            return
        if len(chunk) > 1:
            yield self._batch(chunk, constants, moving, rows=slice(0, -1))
        yield self._batch(chunk, {**constants, **self._done()}, moving, rows=slice(-1, None))

    def _batch(
        self,
        chunk: Chunk,
        constants: Mapping[str, OffsetValue],
        moving: Mapping[str, pa.Array],
        *,
        rows: slice,
    ) -> SourceBatch:
        goes_to, read = self._goes_to, self._opened().value_schema
        own, values = self._schema.of(read), self._schema.values(chunk.values[rows], read)
        values = self._fields.of(values, own, chunk, rows)
        return SourceBatch(
            topic=goes_to.topic,
            partition=goes_to.partition,
            keys=None if goes_to.key is None else pa.repeat(goes_to.key, len(values)),
            headers=self._headers.of(chunk, rows),
            values=values,
            value_schema=self._fields.schema(own),
            source_partition=self._split.partition,
            offsets=BatchOffsets(
                constant=constants,
                columns={key: column[rows] for key, column in moving.items()},
            ),
        )

    def _saying_last(self, batch: SourceBatch) -> SourceBatch:
        headers, values = batch.headers, batch.values
        if LAST in self._config.headers:
            headers = says_last(headers)
        if LAST in self._config.fields:
            values = says_last_field(values)
        return replace(batch, headers=headers, values=values)

    def _constants(self, more: Mapping[str, OffsetValue]) -> dict[str, OffsetValue]:
        return {
            "skip": 0,
            "version": self._details.version,
            "size": self._details.size,
            "format": self._details.format,
            **more,
        }

    def _is_at_end(self) -> bool:
        reader = self._opened()
        return not self._lost and not reader.cut_short and self._whole(reader.place.anchor)

    def _done(self) -> dict[str, OffsetValue]:
        """What the last offset says besides; what comes after the commit is done to whole files only."""
        if _RANGED in self._split.partition or self._config.after_commit == "keep":
            return {"done": True}
        return {"done": True, CLEANUP: PENDING}

    def _whole(self, position: int) -> bool:
        """Whether *position* is where this split's partition ends, and the file is still what it was."""
        details = self._details
        at_file_end = self.packed or self._format.sealed or position >= details.size
        if _RANGED in self._split.partition:
            reached = self._format.sealed or position >= (details.stop or 0)
            at_end = reached or (details.tail and at_file_end)
            return at_end and self._place.is_as_planned(self._path, details, grown=True)
        if not details.settled or not details.tail or not at_file_end:
            return False
        return self._place.is_as_planned(self._path, details, grown=False)
