"""What the records of a batch are compressed with, and what may become of it."""

from __future__ import annotations

import pytest

from headrace.kafka.batches.compression import (
    TooSmallError,
    decompress_into,
    decompressed,
    writable,
)
from headrace.kafka.batches.decoding import Decoding
from headrace.kafka.batches.errors import CorruptBatchError
from record_batches import COMPRESSIONS, SNAPPY, Row, batch, compressed, read, sealed, xerial

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
