"""The four ways in which the records of a batch are compressed: done, and undone into memory of a known size."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import cramjam
import numpy as np

_FIRST_TRY: Final = 8
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_BLOCK_LENGTH: Final = struct.Struct(">i")
# What cramjam says of an output that is too small, and of nothing else.
_OUTPUT_IS_FULL: Final = "failed to write whole buffer"

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names of the compressions, as ``compression.type`` has them; each at its number."""
# Java's blocks; its readers take no others of lz4 than those that the header announces.
_SNAPPY_BLOCK_BYTES: Final = 32 << 10
_LZ4_BLOCK_BYTES: Final = 64 << 10
# Versions of the stream: its own, and the oldest that can read it.
_XERIAL_HEADER: Final = _XERIAL + struct.pack(">ii", 1, 1)
# Version 1, independent blocks of 64 KiB, no checksum of the content, and the checksum of these two bytes. Java's reader
# takes no linked blocks.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_END: Final = bytes(4)
_LZ4_STORED: Final = 1 << 31
_LZ4_LENGTH: Final = struct.Struct("<I")
# Java's own defaults.
_GZIP_LEVEL: Final = 6
_ZSTD_LEVEL: Final = 3


class TooSmallError(Exception):
    """There is more than the output has room for."""


class Compression(NamedTuple):
    """How the records of a batch are compressed: *codec* as in a batch's attributes, *level* of the codec's own, ``None`` for its default."""

    codec: int = 0
    level: int | None = None


NO_COMPRESSION: Final = Compression()


def compressed(records: memoryview, how: Compression) -> bytes:
    """The *records* of a batch as Java's clients compress them, for any reader."""
    return _COMPRESSING[how.codec](records, how.level)


def decompress_into(compression: int, records: memoryview, output: memoryview) -> int:
    """Decompress a batch's *records* into *output*; the answer is how many bytes they are there.

    *compression* is what the attributes of the batch say: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Raises :class:`TooSmallError`,
    and ``ValueError`` when *records* are not what they ought to be. Whatever they say, nothing is allocated beside *output*.
    """
    decompress = _CODECS.get(compression)
    if decompress is None:
        raise ValueError(f"compression {compression} is not known")
    try:
        return decompress(records, output)
    except cramjam.DecompressionError as error:
        if _OUTPUT_IS_FULL in str(error):
            raise TooSmallError from error
        raise ValueError(f"its records cannot be decompressed ({error})") from error


def decompressed(compression: int, records: memoryview, max_bytes: int) -> memoryview:
    """The records of one batch in memory of their own; ``ValueError`` when they have more than *max_bytes*, or are damaged."""
    # Snappy says the size; of the others only trying tells. Memory that is not written to costs nothing.
    size = _FIRST_TRY * max(len(records), _FIRST_TRY)
    while True:
        size = min(size, max_bytes)
        output = writable(size)
        with suppress(TooSmallError):
            return output[: decompress_into(compression, records, output)]
        if size == max_bytes:
            raise ValueError(
                f"its records decompress to more than {max_bytes} bytes (if that is how they were written, raise "
                "max.record.batch.bytes)"
            )
        size *= 2


def writable(size: int) -> memoryview:
    """Memory for *size* bytes, of any content; what is never written to costs nothing."""
    return np.empty(size, np.uint8).data


def _copy(records: memoryview, output: memoryview) -> int:
    if len(records) > len(output):
        raise TooSmallError
    output[: len(records)] = records
    return len(records)


def _snappy(compressed: memoryview, output: memoryview) -> int:
    """One raw block, as librdkafka writes it, or the blocks of the stream that Java's library (xerial) writes."""
    if bytes(compressed[: len(_XERIAL)]) != _XERIAL:
        return _snappy_block(compressed, output)
    at, used = _XERIAL_HEADER_BYTES, 0
    while at < len(compressed):
        if at + _BLOCK_LENGTH.size > len(compressed):
            raise ValueError("its snappy stream ends within the length of a block")
        (length,) = _BLOCK_LENGTH.unpack_from(compressed, at)
        at += _BLOCK_LENGTH.size
        if not 0 < length <= len(compressed) - at:
            raise ValueError(f"its snappy stream has a block of {length} bytes")
        used += _snappy_block(compressed[at : at + length], output[used:])
        at += length
    return used


def _snappy_block(block: memoryview, output: memoryview) -> int:
    if cramjam.snappy.decompress_raw_len(block) > len(output):
        raise TooSmallError
    return cramjam.snappy.decompress_raw_into(block, output)


def _lz4(compressed: memoryview, output: memoryview) -> int:
    """The frame that Java's clients and librdkafka write, block by block; another one by the library's decoder of frames.

    That decoder takes three times as long for a batch of 16 KB: it makes its own memory for each frame.
    """
    at, end = len(_LZ4_HEADER), len(compressed) - len(_LZ4_END)
    if bytes(compressed[:at]) != _LZ4_HEADER or bytes(compressed[end:]) != _LZ4_END:
        return cramjam.lz4.decompress_into(compressed, output)
    used = 0
    while at < end:
        if at + _LZ4_LENGTH.size > end:
            raise ValueError("its lz4 frame ends within the length of a block")
        (length,) = _LZ4_LENGTH.unpack_from(compressed, at)
        at += _LZ4_LENGTH.size
        size = length & ~_LZ4_STORED
        if not 0 < size <= end - at:
            raise ValueError(f"its lz4 frame has a block of {size} bytes")
        decompress = _copy if length & _LZ4_STORED else _lz4_block
        used += decompress(compressed[at : at + size], output[used:])
        at += size
    return used


def _lz4_block(block: memoryview, output: memoryview) -> int:
    if len(output) >= _LZ4_BLOCK_BYTES:
        return cramjam.lz4.decompress_block_into(block, output[:_LZ4_BLOCK_BYTES])
    # The library does not say whether a block is damaged or larger than there is room for.
    whole = writable(_LZ4_BLOCK_BYTES)
    return _copy(whole[: cramjam.lz4.decompress_block_into(block, whole)], output)


def _gzipped(records: memoryview, level: int | None) -> bytes:
    return bytes(cramjam.gzip.compress(records, level=_GZIP_LEVEL if level is None else level))


def _zstd_compressed(records: memoryview, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(records, level=_ZSTD_LEVEL if level is None else level))


def _snappy_framed(records: memoryview, _: int | None) -> bytes:
    parts = [_XERIAL_HEADER]
    for block in _blocks(records, _SNAPPY_BLOCK_BYTES):
        made = bytes(cramjam.snappy.compress_raw(block))
        parts += [_BLOCK_LENGTH.pack(len(made)), made]
    return b"".join(parts)


def _lz4_framed(records: memoryview, level: int | None) -> bytes:
    if level is not None:
        compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(records))
        return bytes(compressor.finish())
    # Twice as fast as the lowest level.
    parts: list[bytes | memoryview] = [_LZ4_HEADER]
    for block in _blocks(records, _LZ4_BLOCK_BYTES):
        made = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(made) < len(block):
            parts += [_LZ4_LENGTH.pack(len(made)), made]
        else:
            parts += [_LZ4_LENGTH.pack(len(block) | _LZ4_STORED), block]
    return b"".join([*parts, _LZ4_END])


def _blocks(records: memoryview, size: int) -> Iterator[memoryview]:
    return (records[at : at + size] for at in range(0, len(records), size))


_COMPRESSING: Final[dict[int, Callable[[memoryview, int | None], bytes]]] = {
    0: lambda records, _: bytes(records),
    1: _gzipped,
    2: _snappy_framed,
    3: _lz4_framed,
    4: _zstd_compressed,
}
_CODECS: Final[dict[int, Callable[[memoryview, memoryview], int]]] = {
    0: _copy,
    1: cramjam.gzip.decompress_into,
    2: _snappy,
    3: _lz4,
    4: cramjam.zstd.decompress_into,
}
