"""Damaged objects of every format: what is before the damage is right, what follows is told, and it ends."""

from __future__ import annotations

import bz2
import csv
import gc
import gzip
import io
import json
import lzma
import random
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import cramjam
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from headrace.formats.avro.format import AvroFormat
from headrace.formats.by_name import JSONL, LINES
from headrace.formats.bytes_format import BytesFormat
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.formats.format import Format
from headrace.formats.parquet.format import ParquetFormat
from headrace.formats.streams import Compression
from headrace.formats.text_encoding import encoding_named
from sources.avro_files import avro_file
from sources.fuzzing import (
    DAMAGES,
    Seen,
    Whole,
    check_damaged,
    cut,
    ends_of,
    first_difference,
    scramble,
    seen_in,
)

MIB = 1024 * 1024
CHANCE = random.Random(11)
ROWS: list[dict[str, Any]] = [
    {
        "n": n,
        "text": "".join(CHANCE.choices('aé€𝄞"\\,;\t x', k=CHANCE.randrange(12))),
        "maybe": None if n % 3 else "there",
        "list": [f"{n}.{each}" for each in range(n % 4)],
    }
    for n in range(40)
]
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "text", "type": "string"},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "list", "type": {"type": "array", "items": "string"}},
    ],
}
JSON = b"".join(json.dumps(row, ensure_ascii=bool(row["n"] % 2)).encode() + b"\n" for row in ROWS)


def _csv(**dialect: Any) -> bytes:  # noqa: ANN401 (the options of another library)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", **dialect)
    writer.writerow(["n", "text", "maybe"])
    # Line ends in fields, too.
    writer.writerows([row["n"], row["text"].replace("x", "\n"), row["maybe"]] for row in ROWS)
    return out.getvalue().encode()


def _avro(codec: str) -> bytes:
    if codec == "zstandard":
        # fastavro writes it with a library of its own choice only.
        return avro_file(SCHEMA, ROWS, codec=codec)
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, ROWS, codec=codec, sync_interval=200)
    return out.getvalue()


def _parquet(**options: Any) -> Whole:  # noqa: ANN401 (the options of another library)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out, row_group_size=7, **options)
    told = pq.read_metadata(io.BytesIO(out.getvalue()))
    ends = list[int]()
    for group in map(told.row_group, range(told.num_row_groups)):
        columns = [group.column(index) for index in range(group.num_columns)]
        starts = [each.dictionary_page_offset or each.data_page_offset for each in columns]
        end = max(
            start + each.total_compressed_size for start, each in zip(starts, columns, strict=True)
        )
        ends += [end] * group.num_rows
    content = out.getvalue()
    return Whole(form=ParquetFormat(), content=content, ends=ends, fragile=ends[-1])


def _plain(form: Format, content: bytes) -> Whole:
    whole = Whole(form=form, content=content, ends=[])
    return replace(whole, ends=ends_of(whole))


def _packed(
    compression: Compression,
    pack: Callable[[bytes], bytes],
    unpack: Callable[[bytes], bytes],
    *,
    form: Format = JSONL,
    content: bytes = JSON,
) -> Whole:
    whole = Whole(form=form, content=pack(content), ends=[], compression=compression, unpack=unpack)
    return replace(whole, ends=ends_of(whole))


def _whole_only(unpack: Callable[[bytes], bytes], whole: bytes) -> Callable[[bytes], bytes]:
    """Of packed data that is not whole nothing is sure to come out."""
    return lambda packed: unpack(packed) if packed == whole else b""


WHOLES: dict[str, Callable[[], Whole]] = {
    "jsonl": lambda: _plain(JSONL, JSON),
    "lines": lambda: _plain(LINES, JSON),
    "csv": lambda: _plain(csv_format(CsvDialect()), _csv()),
    "csv with escapes": lambda: _plain(
        csv_format(CsvDialect(escape="\\")), _csv(escapechar="\\", doublequote=False)
    ),
    "bare csv": lambda: _plain(
        csv_format(CsvDialect(quote="", header=False, delimiter=";")), b"1;2;3\n" * 40
    ),
    "csv with comments": lambda: _plain(
        csv_format(CsvDialect(comment="#", skip_lines=1, trim=True)),
        b'made "here\n# it"s\n' + _csv().replace(b"\r\n", b' \r\n# "x\r\n'),
    ),
    "windows csv": lambda: _plain(
        csv_format(CsvDialect(), encoding_named("windows-1252")),
        _csv().decode().encode("windows-1252", "replace"),
    ),
    # A last piece that is shorter would be another one where bytes follow.
    "bytes": lambda: _plain(BytesFormat(record_bytes=50), JSON[: len(JSON) // 50 * 50]),
    **{
        f"avro {codec}": lambda codec=codec: _plain(AvroFormat(block_bytes=MIB), _avro(codec))
        for codec in ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
    },
    "parquet": lambda: _parquet(write_page_checksum=True),
    "parquet none": lambda: _parquet(compression="none", use_dictionary=False),
    "parquet gzip": lambda: _parquet(compression="gzip", data_page_version="2.0"),
    "parquet zstd": lambda: _parquet(compression="zstd"),
    "gzip": lambda: _packed(
        Compression.GZIP, gzip.compress, lambda packed: zlib.decompressobj(31).decompress(packed)
    ),
    "gzip csv": lambda: _packed(
        Compression.GZIP,
        gzip.compress,
        lambda packed: zlib.decompressobj(31).decompress(packed),
        form=csv_format(CsvDialect()),
        content=_csv(),
    ),
    "gzip bytes": lambda: _packed(
        Compression.GZIP,
        gzip.compress,
        lambda packed: zlib.decompressobj(31).decompress(packed),
        form=BytesFormat(record_bytes=50),
    ),
    "bzip2": lambda: _packed(
        Compression.BZIP2, bz2.compress, lambda packed: bz2.BZ2Decompressor().decompress(packed)
    ),
    "xz": lambda: _packed(
        Compression.XZ, lzma.compress, lambda packed: lzma.LZMADecompressor().decompress(packed)
    ),
    "zstd": lambda: _packed(
        Compression.ZSTD,
        zstandard.ZstdCompressor(write_checksum=True).compress,
        lambda packed: zstandard.ZstdDecompressor().decompressobj().decompress(packed),
    ),
    "snappy": lambda: _packed(
        Compression.SNAPPY,
        lambda text: bytes(cramjam.snappy.compress(text)),
        _whole_only(
            lambda packed: bytes(cramjam.snappy.decompress(packed)),
            bytes(cramjam.snappy.compress(JSON)),
        ),
    ),
    "lz4": lambda: _packed(
        Compression.LZ4,
        lambda text: bytes(cramjam.lz4.compress(text)),
        _whole_only(
            lambda packed: bytes(cramjam.lz4.decompress(packed)),
            bytes(cramjam.lz4.compress(JSON)),
        ),
    ),
}
PLAIN = [name for name in WHOLES if name in ("jsonl", "lines", "csv", "bare csv", "bytes")]
every_format = pytest.mark.parametrize("name", WHOLES)
_EXAMPLES = 25


@cache
def whole_of(name: str) -> tuple[Whole, Seen]:
    """The sound object of that name, and its records."""
    whole = WHOLES[name]()
    return whole, seen_in(whole, whole.content)


@every_format
def test_a_sound_object_is_read_to_its_end(name: str):
    """What the other tests compare with."""
    whole, sound = whole_of(name)

    assert sound.failure is None
    assert len(whole.ends) == len(sound.records) == len(sound.pieces) > 30
    assert sound.anchor >= whole.ends[-1] or name.startswith("parquet")


@every_format
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_records_before_damage_are_right_and_the_rest_is_told(
    name: str, damage: Callable[[bytes, random.Random], bytes]
):
    """Or are not there, with an error; whatever the damage is, reading ends in bounded steps and chunks."""
    whole, sound = whole_of(name)
    chance = random.Random(f"{name} {damage.__name__}")

    for _ in range(_EXAMPLES):
        check_damaged(whole, sound, damage(whole.content, chance))


@pytest.mark.parametrize("name", [name for name in WHOLES if name not in ("bare csv", "bytes")])
def test_an_object_that_is_cut_off_ends_short_or_with_an_error(name: str):
    """Against its planned length, wherever it is cut: it is never taken for a whole one."""
    whole, _ = whole_of(name)
    limit = len(whole.content) if whole.compression is Compression.NONE else None
    chance = random.Random(name)

    for _ in range(_EXAMPLES):
        content = cut(whole.content, chance)
        found = seen_in(whole, content, limit=limit)
        told = (
            found.cut_short or found.failure is not None or bool(found.pieces[len(found.records) :])
        )
        assert told or (name == "snappy" and not found.pieces), len(content)


@pytest.mark.parametrize("name", PLAIN)
def test_all_bytes_of_a_text_are_accounted_for(name: str):
    """What does not end with an error ends behind the last byte."""
    whole, _ = whole_of(name)
    chance = random.Random(name)

    for damage in DAMAGES * _EXAMPLES:
        content = damage(whole.content, chance)
        found = seen_in(whole, content)
        assert found.failure is not None or len(content) == found.anchor


@pytest.mark.parametrize("name", ["jsonl", "lines"])
def test_each_line_is_a_record_or_a_bad_one(name: str):
    """As many as Python counts, whatever they are."""
    whole, _ = whole_of(name)
    chance = random.Random(name)

    for damage in DAMAGES * _EXAMPLES:
        content = damage(whole.content, chance)
        found = seen_in(whole, content)
        text = content.removeprefix(b"\xef\xbb\xbf")
        lines = text.removesuffix(b"\n").split(b"\n") if text else []
        if name == "jsonl":
            lines = [line for line in lines if line.strip(b" \t\r")]
        assert found.failure is not None or len(lines) == len(found.pieces)


@pytest.mark.parametrize("name", [name for name in WHOLES if name.startswith(("avro", "parquet"))])
def test_a_container_that_ends_well_has_all_its_records(name: str):
    """Blocks and row groups say how many they have; a flipped bit makes them no fewer."""
    whole, sound = whole_of(name)
    chance = random.Random(name)

    for _ in range(8 * _EXAMPLES):
        content = bytearray(whole.content)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        found = seen_in(whole, bytes(content))
        assert found.failure is not None or len(sound.pieces) == len(found.pieces)


@every_format
def test_what_is_no_such_object_at_all_takes_little_memory(name: str):
    """Lengths in random bytes ask for none, and a megabyte of damage is read in pieces."""
    whole, _ = whole_of(name)
    chance = random.Random(name)
    before = pa.total_allocated_bytes()
    tracemalloc.start()

    for _ in range(20):
        seen_in(whole, scramble(whole.content, chance))
    seen_in(whole, whole.content[:64] + chance.randbytes(MIB // 4))

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # What failed is held by its traceback.
    gc.collect()
    assert peak < 24 * MIB
    assert pa.total_allocated_bytes() - before < MIB


def test_the_first_difference_is_found():
    """It decides which records must be right."""
    assert [0, 2, 1, 3] == [
        first_difference(b"abc", other) for other in (b"", b"ab", b"axc", b"abcd")
    ]
