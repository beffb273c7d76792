"""One split, opened where its offset says that reading goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import FileIO

import pyarrow as pa

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.task import Split
from headrace.connectors.files.changed import put_back, replaced
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.file_opener import FileOpener
from headrace.connectors.files.formats import packing_of, packing_told
from headrace.connectors.files.local.fingerprinting_stream import (
    FingerprintingStream,
    open_fingerprinting_stream,
)
from headrace.connectors.files.prefix_fingerprint import CHECKED, CHECKSUM, DIGEST, fingerprint_of
from headrace.connectors.files.progress import is_range, number, path_of
from headrace.connectors.files.tail import behind_line_end
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.format import Format, ObjectInput, ReadLimits
from headrace.formats.object_reader import ObjectReader
from headrace.formats.readable import Readable
from headrace.formats.rows import Int64Array
from headrace.formats.streams import Compression, PackingDamage, packing_damage

_UNPACKED = " of the unpacked text"
# Ten seconds of bzip2, the slowest, or of a store: meanwhile a transaction is open, and the poll does not return.
_MOST_UNPACKED_AGAIN = 256 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSplit:
    """A split that is open: its *reader*, whether its file is *packed*, and what knows the bytes again.

    There is no *fingerprinting* for what a version or its being finished tells apart.
    """

    reader: ObjectReader
    packed: bool
    fingerprinting: FingerprintingStream | None

    def fingerprint(self, anchor: int) -> dict[str, int]:
        """What an offset says of the bytes before *anchor*."""
        if self.fingerprinting is None:
            return {}
        fingerprint = self.fingerprinting.fingerprint_at(anchor)
        told = {CHECKED: fingerprint.checked, CHECKSUM: fingerprint.checksum}
        return told if fingerprint.digest is None else {**told, DIGEST: fingerprint.digest}

    def fingerprints(self, anchors: Int64Array) -> Mapping[str, pa.Array]:
        """What offsets say of the bytes before each of *anchors*, as columns."""
        return {} if self.fingerprinting is None else self.fingerprinting.columns(anchors)


class SplitOpening:
    """Opens the file at *split*'s path, which is of *form*, by *opener*. Used once."""

    def __init__(self, split: Split, config: FilesConfig, opener: FileOpener, form: Format) -> None:
        self._split = split
        self._config = config
        self._opener = opener
        self._format = form
        self._details = SplitDetails.of(split.details)
        self._path = path_of(split.partition)

    def open(self) -> OpenedSplit | None:
        """What reads it; ``None`` when it is not the one that was planned.

        Raises what :class:`~headrace.connectors.files.file_opener.FileOpener` and the format do,
        :class:`~headrace.connect.errors.RecordError` when what is before the place cannot be unpacked, and
        :class:`~headrace.connect.errors.TaskFailedError` for a packed file that was replaced, with ``fail``.
        """
        told = packing_told(self._path, self._config)
        opened = self._opener.open(self._path, self._details, with_head=told is None)
        if opened is None:
            return None
        packing = packing_of(self._path, opened.head, self._config)
        resume = self._resume()
        if self._details.tailed:
            resume = behind_line_end(opened.raw, resume, self._path)
        fingerprinting: FingerprintingStream | None = None
        # What is in a store is known by its version, and so is a file that is only read when it is finished.
        if isinstance(opened.raw, FileIO) and not self._format.sealed:
            fingerprinting = self._fingerprinted(opened.raw, packing, resume)
            if fingerprinting is None:
                opened.raw.close()
                return self._left_to_the_plan(packing)
        return OpenedSplit(
            reader=self._reader(opened.raw, packing, fingerprinting, resume),
            packed=packing is not Compression.NONE,
            fingerprinting=fingerprinting,
        )

    def packing_damage(self, check: Callable[[], None]) -> PackingDamage | None:
        """What is wrong with the packing of the file; ``None``: nothing was found. Opens it once more and unpacks it.

        Of a file of more than 256 MiB nothing is found, nor behind the first 256 MiB that it unpacks to. *check* is
        called again and again meanwhile, and may raise. Raises as :meth:`open`.
        """
        if self._details.size > _MOST_UNPACKED_AGAIN:
            return None
        opened = self._opener.open(self._path, self._details, with_head=True)
        if opened is None:
            return None
        try:
            packing = packing_of(self._path, opened.head, self._config)
            return packing_damage(opened.raw, packing, at_most=_MOST_UNPACKED_AGAIN, check=check)
        finally:
            opened.raw.close()

    def _reader(
        self,
        raw: Readable,
        packing: Compression,
        fingerprinting: FingerprintingStream | None,
        resume: Resume,
    ) -> ObjectReader:
        config = self._config
        return self._format.reader(
            ObjectInput(native_key=self._path, raw=raw, compression=packing, stream=fingerprinting),
            span=self._span(resume),
            resume=resume,
            limits=ReadLimits(
                rows=config.batch_max_rows,
                chunk_bytes=config.batch_max_bytes,
                record_bytes=config.max_line_bytes,
                record_key="files.max.line.bytes",
            ),
            constants=self._split.offset or {},
        )

    def _fingerprinted(
        self, raw: FileIO, packing: Compression, resume: Resume
    ) -> FingerprintingStream | None:
        """The bytes to read, or ``None`` when the file does not begin with what was sent of it."""
        config = self._config
        try:
            return open_fingerprinting_stream(
                raw,
                packing,
                self._first_byte(resume),
                fingerprint=fingerprint_of(self._split.offset),
                # What is read ahead, and the rows before that.
                keep=2 * (config.max_line_bytes + 2 * config.batch_max_bytes)
                + config.looks_ahead_bytes,
                digests=not is_range(self._split.partition),
            )
        except RecordError as error:
            raw.close()
            raise error.located(self._path, f"before byte {resume.anchor}{_UNPACKED}") from error
        except OSError:
            raw.close()
            raise

    def _left_to_the_plan(self, packing: Compression) -> None:
        # With `fail`, plans trust the inode and size of a packed file, to unpack it here only.
        if packing is not Compression.NONE and self._config.changed == "fail":
            raise TaskFailedError(f"{self._path}: {replaced()} {put_back()}")

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
