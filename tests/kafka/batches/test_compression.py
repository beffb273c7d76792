"""What the records of a batch are compressed with, and what may become of it."""

from __future__ import annotations

import random

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.compression import (
    Compression,
    TooSmallError,
    decompress_into,
    decompressed,
    writable,
)
from headrace.kafka.batches.compression import compressed as packed
from headrace.kafka.batches.decoding import Decoding
from headrace.kafka.batches.errors import CorruptBatchError
from record_batches import COMPRESSIONS, LZ4, SNAPPY, Row, batch, compressed, read, sealed, xerial


def _content(piece: bytes | random.Random, count: int) -> bytes:
    """A *piece* again and again, or *count* bytes that cannot be made smaller."""
    return piece * count if isinstance(piece, bytes) else piece.randbytes(count)


RECORDS = b"the records of a batch, " * 40
# The records of a batch by Kafka's own producer, which frames them (snappy-java 1.1.10).
XERIAL = bytes.fromhex(
    "82534e41505059000000000100000001000000243b3858000000066b657946"
    "76616c75652072060038000c000a020100000c000204000100"
)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_more_than_there_is_room_for_is_told_from_damage(compression: int) -> None:
    """The first is tried again with more room, the second is not; the library tells them apart by a sentence."""
    packed = memoryview(compressed(compression, RECORDS))

    with pytest.raises(TooSmallError):
        decompress_into(compression, packed, writable(len(RECORDS) - 1))
    assert len(RECORDS) == decompress_into(compression, packed, writable(len(RECORDS)))
    if compression:
        with pytest.raises(ValueError, match="cannot be decompressed"):
            decompress_into(compression, packed[: len(packed) // 2], writable(len(RECORDS)))


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_a_batch_that_expands_too_much_is_refused(compression: int) -> None:
    """A thousandfold is nothing that a batch can be."""
    bomb = memoryview(compressed(compression, bytes(32 << 20)))

    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        decompressed(compression, bomb, 1 << 20)
    assert 32 << 20 == len(decompressed(compression, bomb, 1 << 30))


@given(
    st.lists(
        st.tuples(st.binary(max_size=40), st.integers(0, 4_000))
        | st.tuples(st.randoms(), st.integers(0, 90_000)),
        max_size=4,
    ).map(lambda parts: b"".join(_content(*part) for part in parts))
)
def test_a_frame_of_lz4_is_what_the_librarys_decoder_of_frames_makes_of_it(content: bytes) -> None:
    """Of one block or several, of which those that do not become smaller are stored as they are."""
    frame = memoryview(packed(memoryview(content), Compression(LZ4)))
    output = writable(len(content))

    assert len(content) == decompress_into(LZ4, frame, output)
    assert content == bytes(output) == bytes(cramjam.lz4.decompress(bytes(frame)))
    if content:
        with pytest.raises(TooSmallError):
            decompress_into(LZ4, frame, writable(len(content) - 1))


def test_frames_of_lz4_that_others_write_are_read() -> None:
    """With linked blocks, and a checksum of the content."""
    content = RECORDS * 500
    for linked in (False, True):
        for checksum in (False, True):
            made = cramjam.lz4.Compressor(level=1, content_checksum=checksum, block_linked=linked)
            made.compress(content)
            assert content == bytes(decompressed(LZ4, memoryview(bytes(made.finish())), 1 << 20))


@pytest.mark.parametrize("kept", [6, 9, 11, 20, -5, -4, -1])
def test_a_frame_of_lz4_that_ends_early_is_refused(kept: int) -> None:
    """Within its header, a length, a block, or its end; also where it ends with what looks like the end of a frame."""
    frame = packed(memoryview(RECORDS), Compression(LZ4))
    for cut in (frame[:kept], frame[:kept] + bytes(4)):
        if cut != frame:
            with pytest.raises(ValueError, match=r"lz4|cannot be decompressed"):
                decompress_into(LZ4, memoryview(cut), writable(1 << 20))


def test_an_unknown_compression_is_refused() -> None:
    """Three bits have room for seven kinds."""
    with pytest.raises(ValueError, match="compression 5 is not known"):
        decompressed(5, memoryview(RECORDS), 1 << 20)


def test_the_stream_of_javas_snappy_library_is_read() -> None:
    """A header, and blocks with their lengths before them."""
    assert b"value value value" in bytes(decompressed(SNAPPY, memoryview(XERIAL), 1 << 20))
    assert RECORDS == bytes(decompressed(SNAPPY, memoryview(xerial(RECORDS)), 1 << 20))


@pytest.mark.parametrize("kept", [17, 19, 20, 25, len(XERIAL) - 1])
def test_a_snappy_stream_that_ends_early_is_refused(kept: int) -> None:
    """Within a length, or within a block."""
    with pytest.raises(ValueError, match="snappy"):
        decompressed(SNAPPY, memoryview(XERIAL[:kept]), 1 << 20)


def test_a_batch_larger_than_the_others_is_decoded_alone() -> None:
    """It needs more memory than a group of batches has; those before and after it keep their order."""
    sizes = [10, 100_000, 20, 300_000, 200_000, 5]
    written = [Row(at, at, b"k", bytes([65 + at]) * size, []) for at, size in enumerate(sizes)]
    how = Decoding(with_headers=True, group_bytes=1000, max_batch_bytes=400_000)

    for compression in COMPRESSIONS:
        data = b"".join(batch([row], compression=compression) for row in written)
        assert written == read(data, how=how)


def test_a_bomb_names_its_batch() -> None:
    """With the offset at which to go on."""
    row = Row(70, 0, None, bytes(2 << 20))
    how = Decoding(group_bytes=1000, max_batch_bytes=1 << 20)

    with pytest.raises(CorruptBatchError, match=r"at offset 70 .* more than 1048576 bytes"):
        read(batch([row], compression=4), how=how)


def test_batches_of_all_compressions_are_decoded_together() -> None:
    """As producers with different settings write them into one partition, Java's snappy frames too."""
    written = [Row(at, at, b"k", b"v" * at, [("h", b"x")]) for at in range(12)]
    batches = [batch([row], compression=row.offset % 5) for row in written]
    java = bytearray(batch(written[-1:]))
    java[61:] = xerial(bytes(java[61:]), block_bytes=8)
    java[22] |= SNAPPY
    batches[-1] = sealed(java)

    assert written == read(b"".join(batches))
