"""Avro files for tests, written byte by byte, so that they can be wrong in every way."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cramjam
import zstandard
from fastavro import parse_schema, schemaless_writer

SYNC = b"sync marker of 16"[:16]


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")


CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": zstandard.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def long(value: int) -> bytes:
    """A number in Avro's variable length."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def text(value: bytes) -> bytes:
    """Bytes with their length."""
    return long(len(value)) + value


def header(schema: object, codec: str = "null") -> bytes:
    """A file's header."""
    told = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    entries = text(b"avro.schema") + text(told) + text(b"avro.codec") + text(codec.encode())
    return b"Obj\x01" + long(2) + entries + long(0) + SYNC


def block(payload: bytes, count: int, codec: str = "null", sync: bytes = SYNC) -> bytes:
    """A block with its marker."""
    return long(count) + text(CODECS[codec](payload)) + sync


def datum(schema: object, value: object) -> bytes:
    """One value."""
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def avro_file(
    schema: object, values: Sequence[Any], *, codec: str = "null", per_block: int = 3
) -> bytes:
    """A whole file with *per_block* records in each block."""
    blocks = [values[start : start + per_block] for start in range(0, len(values), per_block)]
    return header(schema, codec) + b"".join(
        block(b"".join(datum(schema, each) for each in part), len(part), codec) for part in blocks
    )
