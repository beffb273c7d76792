"""A Parquet file, opened: its row groups, its schema, and what is wrong with it in words."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connect.arrow_types import struct_schema
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.schema import Schema
from headrace.formats.damage import DamagedObjectError
from headrace.formats.parquet.enums import with_enum_texts
from headrace.formats.parquet.footer import FooterPlaces, footer_places
from headrace.formats.parquet.ranges import row_group_begins
from headrace.formats.readable import Readable

_MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_TAIL = 8
_LEAST = 12
_KIB = 1024
# Most footers are not larger.
_FOOTER_BYTES = 64 * _KIB
# Each column has a buffer of its own; all of them together hold about so much.
_READ_AHEAD = 16 * 1024 * _KIB
_SMALLEST_BUFFER, _LARGEST_BUFFER = 16 * _KIB, 1024 * _KIB
_REPLACE = "Replace the file with a whole one."


class ParquetSource:
    """The row groups of the file in *raw*, which errors call *native_key*. Does not own *raw*.

    Raises :class:`~headrace.formats.damage.DamagedObjectError` for what is no sound Parquet
    file, and for one whose columns cannot be fields of a record, by their names or types,
    :class:`~headrace.connect.errors.TaskFailedError` for *columns* that it does not have, and ``OSError`` when the
    store fails. Used on one thread.
    """

    def __init__(self, raw: Readable, native_key: str, *, columns: tuple[str, ...]) -> None:
        self._raw = raw
        self.native_key = native_key
        self.size = _checked_size(raw, native_key)
        # Arrow takes a short read for the end of the file, so whole reads are made of them here.
        whole = io.BufferedReader(raw, _SMALLEST_BUFFER)
        try:
            footer = _footer(whole, self.size)
            metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer))
            places = _places(footer, self.size)
            leaves = max(1, metadata.num_columns)
            self._file = pq.ParquetFile(
                whole,
                metadata=metadata,
                pre_buffer=False,
                buffer_size=min(max(_READ_AHEAD // leaves, _SMALLEST_BUFFER), _LARGEST_BUFFER),
                page_checksum_verification=True,
                # Nanoseconds would silently wrap round for the years before 1678 and after 2261.
                coerce_int96_timestamp_unit="us",
            )
            self.rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            if min(self.rows, default=0) < 0 or sum(self.rows) != metadata.num_rows:
                # Arrow reads as many as a row group says, so that fewer would be the end of it.
                told = f"its row groups have {sum(self.rows)} rows, and it says that it has"
                raise pa.ArrowInvalid(f"{told} {metadata.num_rows}")
            self._metadata = metadata
            self.begins = row_group_begins(places)
            fields = with_enum_texts(self._file.schema_arrow, self._file.schema)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.failure("its footer", error) from error
        self.names = _chosen(native_key, fields.names, columns)
        self.schema = self._schema_of(fields)

    def bytes_per_row(self, group: int) -> int:
        """About how many bytes a row of *group* has, as its footer says; packed ones may hold far more."""
        return max(1, self._metadata.row_group(group).total_byte_size // max(1, self.rows[group]))

    def batches(self, group: int, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, in order: *rows* at once, or later what :meth:`read_at_once` says."""
        return self._file.iter_batches(
            batch_size=rows, row_groups=[group], columns=list(self.names), use_threads=False
        )

    def read_at_once(self, rows: int) -> None:
        """Let the next batch have *rows* rows at most."""
        self._file.reader.set_batch_size(rows)

    def failure(self, where: str, error: Exception) -> Exception:
        """What to raise for *error* at *where*: the error itself when it is the store that failed."""
        # Arrow's own complaints about the contents are OSErrors, too, but neither the system's nor a store's.
        if isinstance(error, OSError) and (error.errno is not None or type(error) is not OSError):
            return error
        told = str(error).strip().split("\n")[0].rstrip(".")
        return _damaged(
            self.native_key,
            where,
            f"The Parquet file is damaged or cut off, so nothing behind this place can be read: {told}.",
            _REPLACE,
        )

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def _schema_of(self, fields: pa.Schema) -> Schema:
        try:
            return struct_schema([fields.field(name) for name in self.names])
        except (TypeError, ValueError) as error:
            advice = "Choose the columns to read with parquet.columns."
            raise _damaged(self.native_key, "its footer", str(error), advice) from error


def _checked_size(raw: Readable, native_key: str) -> int:
    """How many bytes it has; raises a sentence for what cannot be a Parquet file by its first and last ones."""
    size = raw.seek(0, os.SEEK_END)
    if not size:
        raise _damaged(
            native_key,
            None,
            "The file is empty. Even a Parquet file without rows has a schema and a footer; the one that "
            "should be here was not written.",
            _REPLACE,
        )
    raw.seek(0)
    head = raw.read(len(_MAGIC)) or b""
    raw.seek(max(0, size - _TAIL))
    tail = raw.read(_TAIL) or b""
    raw.seek(0)
    if _ENCRYPTED in (head, tail[-len(_ENCRYPTED) :]):
        told = "The Parquet file is encrypted, which is not supported."
        raise _damaged(native_key, None, told, "Decrypt it.")
    if head != _MAGIC:
        told = "This is not a Parquet file, because it does not begin with PAR1."
        advice = "Correct the format, or select the files with a glob."
        raise _damaged(native_key, "byte 0", told, advice)
    if size < _LEAST or not tail.endswith(_MAGIC):
        told = "The Parquet file is cut off, because it does not end with a footer."
        raise _damaged(native_key, f"byte {size}", told, _REPLACE)
    return size


def _footer(whole: io.BufferedReader[Readable], size: int) -> bytes:
    """The footer of a file of *size* bytes, and its last ones."""
    # At once, as Arrow would: a store is asked again for each jump.
    end = _last(whole, size, min(size, _FOOTER_BYTES))
    length = int.from_bytes(end[-_TAIL : -len(_MAGIC)], "little") + _TAIL
    if length > size - len(_MAGIC):
        raise pa.ArrowInvalid(f"it should have {length} bytes, and the whole file has {size}")
    return end[-length:] if length <= len(end) else _last(whole, size, length)


def _last(whole: io.BufferedReader[Readable], size: int, count: int) -> bytes:
    whole.seek(size - count)
    return whole.read(count)


def _places(footer: bytes, size: int) -> FooterPlaces:
    """What *footer*, with the last bytes of a file of *size* bytes, says of its columns; raises what Arrow does."""
    try:
        found = footer_places(footer[:-_TAIL])
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    wrong = found.misplaced(size - len(footer))
    if wrong:
        raise pa.ArrowInvalid(wrong)
    return found


def _damaged(native_key: str, position: str | None, reason: str, advice: str) -> DamagedObjectError:
    damage = RecordError(reason, native_key=native_key, position=position, advice=advice)
    return DamagedObjectError(damage)


def _chosen(native_key: str, there: list[str], columns: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in columns if name not in there]
    if unknown:
        raise TaskFailedError(
            f"{native_key}: parquet.columns names {', '.join(map(repr, unknown))}, but the file has no "
            f"such column. It has: {', '.join(there)}."
        )
    chosen = columns or tuple(there)
    twice = sorted({name for name in chosen if there.count(name) > 1})
    if twice:
        raise _damaged(
            native_key,
            "its footer",
            f"Several columns are called {', '.join(map(repr, twice))}, so they cannot be fields of one record.",
            "Choose other columns with parquet.columns.",
        )
    return chosen
