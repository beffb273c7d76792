"""Packed objects: whatever packs them, their bytes come out, or an error does."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import struct
import tracemalloc
from collections.abc import Callable, Mapping

import cramjam
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError
from headrace.formats.compression import EXTENSIONS, Compression, by_magic, by_name
from headrace.formats.streams import ByteStream, open_stream
from project.sampling import drawn

MIB = 1024 * 1024


def xerial(data: bytes, block: int = 32 * 1024) -> bytes:
    """Snappy as Kafka's and Hadoop's Java library writes it to streams."""
    out = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        out += struct.pack(">i", len(packed)) + packed
    return out


def framed(data: bytes) -> bytes:
    """Snappy's framing format, with padding and a chunk that readers skip."""
    packed = bytes(cramjam.snappy.compress(data)) if data else b"\xff\x06\0\0sNaPpY"
    return packed + b"\xfe\x03\0\0\0\0\0" + b"\x80\x01\0\0x"


PACKERS: Mapping[str, tuple[Compression, Callable[[bytes], bytes]]] = {
    "plain": (Compression.NONE, bytes),
    "gzip": (Compression.GZIP, gzip.compress),
    "zstd": (Compression.ZSTD, zstandard.compress),
    "bzip2": (Compression.BZIP2, bz2.compress),
    "xz": (Compression.XZ, lzma.compress),
    "snappy": (Compression.SNAPPY, framed),
    "xerial": (Compression.SNAPPY, xerial),
    "lz4": (Compression.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
}
PACKED = [name for name in PACKERS if name != "plain"]


def rest_of(stream: ByteStream, piece: int = 5000) -> bytes:
    """All that *stream* still has, read in pieces of that size."""
    out, target = bytearray(), memoryview(bytearray(piece))
    while count := stream.read_into(target):
        out += target[:count]
    stream.close()
    return bytes(out)


def unpacked(packed: bytes, compression: Compression, position: int = 0) -> bytes:
    """What is behind *position* of an object."""
    return rest_of(open_stream(io.BytesIO(packed), compression, position))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", PACKERS)
@settings(max_examples=drawn(40), deadline=None)
@given(
    parts=some.lists(some.binary(max_size=300) | some.just(b"a" * 200_000), min_size=1, max_size=3),
    data=some.data(),
)
def test_all_bytes_come_out_from_any_position(name: str, parts: list[bytes], data: some.DataObject):
    """Also of parts that were packed apart and put together."""
    compression, pack = PACKERS[name]
    whole = b"".join(parts)
    position = data.draw(some.integers(0, len(whole)))

    assert whole[position:] == unpacked(b"".join(map(pack, parts)), compression, position)


@pytest.mark.parametrize("name", PACKED)
def test_an_object_that_is_cut_off_anywhere_says_so(name: str):
    """Only behind a whole part, which for Snappy is a chunk, a shorter object is a whole one."""
    compression, pack = PACKERS[name]
    text = b"some text\n" * 30
    packed = pack(text)
    borders = {"snappy": {10, len(packed) - 12, len(packed) - 5}, "xerial": {16}}.get(name, set())

    for cut in range(len(packed)):
        if cut in borders:
            assert text.startswith(unpacked(packed[:cut], compression))
            continue
        with pytest.raises(RecordError, match="cut off"):
            unpacked(packed[:cut], compression)


@pytest.mark.parametrize("name", PACKED)
@settings(max_examples=drawn(150), deadline=None)
@given(data=some.data())
def test_flipped_bits_end_in_bytes_or_an_error(name: str, data: some.DataObject):
    """In no other error, and in no hang."""
    compression, pack = PACKERS[name]
    packed = bytearray(pack(b"some text\n" * 30))
    for _ in range(data.draw(some.integers(1, 3))):
        packed[data.draw(some.integers(0, len(packed) - 1))] ^= 1 << data.draw(some.integers(0, 7))
    with contextlib.suppress(RecordError):
        unpacked(bytes(packed), compression)


@pytest.mark.parametrize("name", ["snappy", "lz4", "xz", "bzip2"])
def test_formats_with_checksums_notice_a_flipped_bit(name: str):
    """Bytes that come out are the right ones."""
    compression, pack = PACKERS[name]
    text = b"some text\n" * 30
    packed = pack(text)[: -12 if name == "snappy" else None]

    for place in range(8 * len(packed)):
        flipped = bytearray(packed)
        flipped[place // 8] ^= 1 << place % 8
        try:
            found = unpacked(bytes(flipped), compression)
        except RecordError:
            continue
        # A Snappy chunk whose type became one that readers skip is skipped.
        assert found == text or (name == "snappy" and not found)


@pytest.mark.parametrize("name", PACKED)
def test_what_is_behind_the_last_part_is_damage(name: str):
    """Zeros are padding where the format allows them."""
    compression, pack = PACKERS[name]

    with pytest.raises(RecordError, match="not sound"):
        unpacked(pack(b"a") + b"garbage behind it", compression)
    if compression in (Compression.GZIP, Compression.XZ):
        assert b"aa" == unpacked(pack(b"a") + b"\0" * 8 + pack(b"a") + b"\0" * 100, compression)


@pytest.mark.parametrize("name", PACKED)
def test_other_data_is_refused(name: str):
    """An object that is not packed as it is said to be."""
    with pytest.raises(RecordError):
        unpacked(b"just some lines\nof text\n", PACKERS[name][0])


class _Pieces(io.BytesIO):
    """Notes how much was read, and gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(1000, size) if size and size > 0 else 1000)


@pytest.mark.parametrize("name", PACKED)
def test_little_is_held_of_an_object_that_unpacks_to_much(name: str):
    """What one step unpacks is bounded, however well the object is packed."""
    compression, pack = PACKERS[name]
    packed = pack(bytes(40 * MIB))
    tracemalloc.start()
    stream = open_stream(_Pieces(packed), compression, 0)  # pyright: ignore[reportArgumentType]
    target = memoryview(bytearray(MIB))
    total = 0
    while count := stream.read_into(target):
        total += count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 40 * MIB == total
    # The dictionary of xz alone takes 8 MiB.
    assert peak < 16 * MIB


@pytest.mark.parametrize("name", PACKED)
def test_an_error_of_the_store_is_not_damage(name: str):
    """It comes out as it is, for the one who can ask the store again."""

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(5, "the store is away")
            return super().read(min(20, size or 20))

        def readinto(self, buffer: memoryview) -> int:
            raise OSError(5, "the store is away")

    compression, pack = PACKERS[name]
    with pytest.raises(OSError, match="the store is away"):
        rest_of(open_stream(Broken(pack(b"some text\n" * 30)), compression, 0))  # pyright: ignore[reportArgumentType]


def test_a_part_of_unlikely_size_is_not_unpacked():
    """Lengths in damaged files ask for no memory."""
    for packed in (
        b"\xff\x06\0\0sNaPpY" + b"\0\xff\xff\xff",
        b"\x82SNAPPY\0" + b"\0" * 8 + b"\x7f\xff\xff\xff",
        b"\x82SNAPPY\0" + b"\0" * 8 + b"\0\0\0\x06\xff\xff\xff\xff\x0f\0",
    ):
        with pytest.raises(RecordError, match="bytes"):
            unpacked(packed, Compression.SNAPPY)


def test_names_tell_the_compression():
    """By the last extension, as it is written."""
    assert set(Compression) - {Compression.NONE} == set(EXTENSIONS.values())
    assert Compression.BZIP2 is by_name("/in/a.csv.bz2")
    assert Compression.NONE is by_name("/in/a.gz.csv")


@pytest.mark.parametrize("name", PACKED)
def test_first_bytes_tell_the_compression(name: str):
    """Of an object whose name does not."""
    compression, pack = PACKERS[name]

    assert compression is by_magic(pack(b"some text\n" * 30)[:1024])


@given(text=some.text(max_size=20))
@pytest.mark.parametrize("start", ["", "BZh91AY&SY", "\x04\x22\x4d\x18", "BZh", "(", "\x1f"])
def test_text_is_never_taken_for_something_packed(start: str, text: str):
    """Whatever it begins with, and also when it is cut inside a character."""
    content = (start + text).encode()

    for cut in range(len(content) + 1):
        assert Compression.NONE is by_magic(content[:cut])
