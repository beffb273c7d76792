"""Parquet files: every row once, whatever is wrong with the file is said, and memory is bounded."""

from __future__ import annotations

import dataclasses
import io
import random
import tracemalloc
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.schema import SchemaType
from headrace.formats.batch_rows import BatchRows
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.compression import Compression
from headrace.formats.format import ObjectInput
from headrace.formats.object_reader import ObjectReader
from headrace.formats.parquet.file import ParquetSource
from headrace.formats.parquet.format import ParquetFormat
from headrace.testing.format_suite import LIMITS, check_resume, reader_of, records_of
from project.sampling import drawn

PARQUET = ParquetFormat()


def written(table: pa.Table, **options: object) -> bytes:
    """*table* as a Parquet file."""
    content = io.BytesIO()
    pq.write_table(table, content, **options)
    return content.getvalue()


def letters(rows: int, **options: object) -> bytes:
    """A file of *rows* rows in row groups of four."""
    table = pa.table({"n": range(rows), "s": [chr(ord("a") + n % 26) * n for n in range(rows)]})
    return written(table, row_group_size=4, **options)


def values_of(content: bytes, *columns: str) -> list[object]:
    """The records' values."""
    return [each.value for each in records_of(reader_of(ParquetFormat(columns=columns), content))]


@settings(max_examples=15, deadline=None)
@given(groups=some.lists(some.integers(0, 4), max_size=4))
def test_parquet_resumes_at_every_record(groups: list[int]):
    """In row groups of any sizes, empty ones included."""
    schema = pa.schema([("n", pa.int64()), ("l", pa.list_(pa.utf8()))])
    content, row = io.BytesIO(), 0
    with pq.ParquetWriter(content, schema) as writer:
        for size in groups:
            rows = [{"n": n, "l": ["x"] * (n % 3)} for n in range(row, row + size)]
            writer.write_table(pa.Table.from_pylist(rows, schema))
            row += size

    assert row == check_resume(PARQUET, content.getvalue())


def test_the_place_behind_a_row_group_is_the_next_one():
    """So that reading goes on there without reading the one before."""
    records = records_of(reader_of(PARQUET, letters(6)))
    assert [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0)] == [
        (each.place.anchor, each.place.skip) for each in records
    ]


def test_row_groups_before_the_place_are_not_read():
    """Damage there does not matter any more; and a count alone passes them over, too."""
    content = bytearray(letters(12, compression="none", use_dictionary=False))
    content[4:40] = bytes(36)
    for resume in (
        Resume(anchor=1, skip=2, record_count=6),
        Resume(anchor=0, skip=6, record_count=6),
    ):
        counts = [
            each.place.record_count
            for each in records_of(reader_of(PARQUET, bytes(content), resume=resume))
        ]
        assert [7, 8, 9, 10, 11, 12] == counts


def test_only_the_last_chunk_says_that_nothing_follows():
    """Row groups without rows may be behind it."""
    content = io.BytesIO()
    schema = pa.schema([("n", pa.int64())])
    with pq.ParquetWriter(content, schema) as writer:
        for rows in ([1, 2, 3], []):
            writer.write_table(pa.table({"n": rows}, schema=schema))
    limits = dataclasses.replace(LIMITS, rows=2)
    reader = reader_of(PARQUET, content.getvalue(), limits=limits)

    chunks = [reader.next_chunk(), reader.next_chunk()]

    assert [False, True] == [chunk is not None and chunk.last for chunk in chunks]
    assert reader.next_chunk() is None


def test_an_empty_table_is_zero_records():
    """Its schema is there all the same."""
    reader = reader_of(PARQUET, written(pa.table({"n": pa.array([], pa.int8())})))
    assert reader.next_chunk() is None
    assert reader.value_schema is not None
    assert ["n"] == [each.name for each in reader.value_schema.fields]


def test_a_reader_that_goes_on_ends_with_its_span():
    """Its anchor is a row group, and the span's end a byte."""
    content = letters(12)
    begins = ParquetSource(io.BytesIO(content), "k", columns=()).begins  # pyright: ignore[reportArgumentType]
    found = list[object]()
    for group, stop in enumerate([*begins[1:], len(content)]):
        reader = PARQUET.reader(
            ObjectInput(native_key="k", raw=io.BytesIO(content)),  # pyright: ignore[reportArgumentType]
            span=Span(stop=stop),
            resume=Resume(anchor=group),
            limits=LIMITS,
            constants={},
        )
        found += [each.value for each in records_of(reader)]
    assert len(begins) > 1
    assert values_of(content) == found


def test_all_columns_or_those_that_are_named():
    """In the order in which they are named; a name with a dot is a name."""
    table = pa.table({"a.b": [1], "a": [{"b": 2, "c": 3}], "d": ["x"]})
    content = written(table)
    assert [{"a.b": 1, "a": {"b": 2, "c": 3}, "d": "x"}] == values_of(content)
    assert [{"d": "x", "a.b": 1}] == values_of(content, "d", "a.b")
    assert [{"a": {"b": 2, "c": 3}}] == values_of(content, "a")
    assert PARQUET.signature() != ParquetFormat(columns=("d",)).signature()


def test_an_unknown_column_is_an_error_that_lists_those_there():
    """Before anything is read."""
    with pytest.raises(TaskFailedError, match=r"an object: .*names 'x'.* It has: n, s\."):
        reader_of(ParquetFormat(columns=("n", "x")), letters(3))


def test_values_have_connects_types():
    """Timestamps of Spark's old kind keep their microseconds, and years far from now."""
    stamps = pa.array([-62_135_596_800_000_001, 5], pa.timestamp("us"))
    table = pa.table(
        {"old": stamps, "d": pa.array([Decimal("1.5"), None]), "u": pa.array([1, 2], pa.uint8())}
    )
    reader = reader_of(PARQUET, written(table, use_deprecated_int96_timestamps=True))
    assert [
        {"old": -62_135_596_800_000_001, "d": Decimal("1.5"), "u": 1},
        {"old": 5, "d": None, "u": 2},
    ] == [each.value for each in records_of(reader)]
    assert reader.value_schema is not None
    assert [SchemaType.INT64, SchemaType.BYTES, SchemaType.INT16] == [
        each.schema.type for each in reader.value_schema.fields
    ]


def test_enumerations_are_texts():
    """Wherever they are; Arrow alone would read their bytes."""
    table = pa.table({"n": [1], "list": [["red", None]], "enum": ["blue"], "text": ["x"]})
    content = written(table, store_schema=False)
    for name in (b"element", b"enum"):
        # The footer's words for "string", twice, become those for "enumeration".
        content = content.replace(name + b"%\x00L\x1c", name + b"%\x08L\x4c")
    assert [{"n": 1, "list": ["red", None], "enum": "blue", "text": "x"}] == values_of(content)
    assert "Enum" in str(pq.ParquetFile(io.BytesIO(content)).schema)


WRONG = [
    (b"", "an object: The file is empty"),
    (b"PAR1", "an object, byte 4: .* cut off"),
    (b"id,name\n1,a\n2,b\n", "an object, byte 0: This is not a Parquet file"),
    (letters(9)[:-1], "an object, byte .* cut off"),
    (b"PAR1" + bytes(20) + b"\xff\0\0\0PAR1", "an object, its footer: .*damaged or cut off"),
    (letters(9)[:4] + letters(9)[40:], "an object, its footer: .*damaged or cut off"),
    (b"PAR1" + bytes(20) + b"\x01\0\0\0PARE", "encrypted"),
]


@pytest.mark.parametrize(("content", "told"), WRONG)
def test_what_is_no_sound_file_is_said(content: bytes, told: str):
    """With the file's name and the place, and never as an end of the data."""
    with pytest.raises(TaskFailedError, match=told):
        records_of(reader_of(PARQUET, content))


@pytest.mark.parametrize("group", range(3))
def test_a_row_group_that_says_it_has_fewer_rows_is_an_error(group: int):
    """Arrow believes it, and the rows that it leaves out would be missing without a word."""
    content = letters(9)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    found = 0
    for place in range(footer, len(content) - 8):
        changed = bytearray(content)
        changed[place] ^= 8 if group < 2 else 2
        try:
            rows = pq.read_metadata(io.BytesIO(bytes(changed)))
        except (pa.ArrowException, OSError):
            continue
        counts = [rows.row_group(each).num_rows for each in range(rows.num_row_groups)]
        if len(counts) == 3 and rows.num_rows == 9 and counts[group] == 0:
            found += 1
            with pytest.raises(TaskFailedError, match=r"its footer: .* rows, and it says"):
                reader_of(PARQUET, bytes(changed))
    assert found


def test_a_damaged_page_is_an_error_behind_what_was_sound():
    """The row groups before it are read, and the error comes again when asked again."""
    content = letters(12, compression="none", use_dictionary=False, write_page_checksum=True)
    page = content.rindex(b"kkkkkkkkkk")
    damaged = content[:page] + b"z" + content[page + 1 :]
    reader = reader_of(PARQUET, damaged)
    read = list[int]()
    for _ in range(2):
        with pytest.raises(
            TaskFailedError, match=r"an object, row group 2, row 0 .record 9.: .*CRC"
        ):
            _count_into(read, reader)
    assert 8 == sum(read)


def _count_into(counts: list[int], reader: ObjectReader) -> None:
    while (chunk := reader.next_chunk()) is not None:
        counts.append(len(chunk))


def test_a_string_that_is_not_utf8_is_a_record_that_is_refused():
    """The records around it are read; it counts, and reading goes on behind it."""
    content = letters(12, compression="none", use_dictionary=False)
    reader = reader_of(PARQUET, content.replace(b"fffff", b"\xff" * 5))
    counts, errors = list[int](), list[RecordError]()
    while True:
        try:
            chunk = reader.next_chunk()
        except RecordError as error:
            errors.append(error)
            continue
        if chunk is None:
            break
        counts += chunk.counts.tolist()
    assert [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12] == counts
    assert ["row group 1, row 1 (record 6)"] == [error.position for error in errors]
    assert "column 's'" in errors[0].reason
    assert 12 == reader.place.record_count


def test_a_refused_value_does_not_spoil_the_rows_behind_it():
    """Reading goes on behind it, where it is in the same batch, inside a struct."""
    table = pa.table({"o": [{"s": letter * 5} for letter in "abcdef"]})
    content = written(table, compression="none", use_dictionary=False)
    bad = content.replace(b"ccccc", b"\xff" * 5)
    rest = records_of(reader_of(PARQUET, bad, resume=Resume(anchor=0, skip=3, record_count=3)))
    assert [{"o": {"s": letter * 5}} for letter in "def"] == [each.value for each in rest]


def test_columns_that_are_not_named_are_not_read():
    """So what is damaged in them does not matter."""
    content = letters(12, compression="none", use_dictionary=False, write_page_checksum=True)
    page = content.rindex(b"kkkkkkkkkk")
    damaged = content[:page] + b"z" + content[page + 1 :]
    assert [{"n": n} for n in range(12)] == values_of(damaged, "n")


def test_two_columns_of_one_name_are_refused():
    """They cannot be fields of one record."""
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(TaskFailedError, match="Several columns are called 'a'"):
        reader_of(PARQUET, written(table))


def test_another_compression_around_it_is_refused():
    """Its footer is at the end, where a packed stream comes last."""
    with pytest.raises(TaskFailedError, match=r"an object: .*not read out of gzip.* Unpack it"):
        reader_of(PARQUET, letters(3), compression=Compression.GZIP)


class _Failing(io.BytesIO):
    """A store that fails once it is read behind the footer."""

    failing = False

    def readinto(self, buffer: object, /) -> int:
        if self.failing:
            raise OSError(5, "Input/output error")
        return super().readinto(buffer)  # pyright: ignore[reportArgumentType]


def test_a_store_that_fails_is_no_damage():
    """Its own error comes through, because another attempt may go well."""
    raw = _Failing(letters(4000))
    source = ObjectInput(native_key="k", raw=raw)  # pyright: ignore[reportArgumentType]
    reader = PARQUET.reader(source, span=Span(), resume=Resume(), limits=LIMITS, constants={})
    raw.failing = True
    with pytest.raises(OSError, match="Input/output error") as caught:
        records_of(reader)
    assert 5 == caught.value.errno


def test_an_offset_behind_the_file_is_refused():
    """A file of fewer row groups is another file."""
    with pytest.raises(TaskFailedError, match="row group 7, but the file has 2"):
        reader_of(PARQUET, letters(6), resume=Resume(anchor=7))


@settings(max_examples=drawn(150), deadline=None)
@given(seed=some.integers(0, 2**32))
def test_no_damage_ends_as_fewer_records(seed: int):
    """Cut, flipped or overwritten bytes: all records are accounted for, or an error is raised."""
    chance = random.Random(seed)
    content = bytearray(letters(12, compression=chance.choice(["none", "snappy"])))
    place = chance.randrange(len(content))
    match chance.randrange(3):
        case 0:
            del content[place:]
        case 1:
            content[place] ^= 1 << chance.randrange(8)
        case _:
            content[place : place + 20] = chance.randbytes(20)
    try:
        reader = reader_of(PARQUET, bytes(content))
        while True:
            try:
                if reader.next_chunk() is None:
                    break
            except RecordError:
                continue
    except TaskFailedError:
        return
    assert 12 == reader.place.record_count


def test_memory_does_not_grow_with_the_row_group():
    """One row group of 24 MB, once packed to almost nothing, and once as it is."""
    table = pa.table({"n": range(6000), "s": pa.array(["x" * 4096] * 6000)})
    packed = written(table)
    plain = written(table, use_dictionary=False, compression="none", data_page_size=65_536)
    del table
    for content in (packed, plain):
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        reader, rows, most = reader_of(PARQUET, content), 0, 0
        while (chunk := reader.next_chunk()) is not None:
            rows += len(chunk)
            most = max(most, pa.total_allocated_bytes() - before)
        most += tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 6000 == rows
        assert most < 12 * 1024 * 1024


def test_batches_follow_the_size_of_rows():
    """Few rows at first; then as many as fit; large ones are handed on in pieces."""
    sizes = BatchRows(most=1000, target_bytes=10_000)
    sizes.expect(1)
    assert 64 == sizes.rows
    sizes.seen(64, 64)
    assert 512 == sizes.rows
    sizes.seen(512, 512 * 100)
    assert 100 == sizes.rows
    sizes.expect(5000)
    assert 2 == sizes.rows
    assert 100 == sizes.fit(1000, 100_000)
    assert 1 == sizes.fit(10, 10_000_000)
