"""Offsets files of Java workers are read as they are laid out, and nothing else is taken for one."""

from __future__ import annotations

import struct

import pytest

from headrace.connect.partition import SourcePartition
from headrace.offsets.java_file import OffsetsFileError, java_offset_entries, java_offsets

HEAD = bytes.fromhex("ACED0005 7372 0011") + b"java.util.HashMap"
HEAD += bytes.fromhex("0507DAC1C31660D1 03 0002 46 000A") + b"loadFactor"
HEAD += bytes.fromhex("49 0009") + b"threshold" + bytes.fromhex("7870 3F400000")
FIRST = bytes.fromhex("7572 0002 5B42 ACF317F8060854E0 02 0000 7870")
FURTHER = bytes.fromhex("7571 007E0002")
KEY = b'["c",{"filename":"a"}]'


def file_of(*arrays: bytes | None, threshold: int = 12, capacity: int = 16) -> bytes:
    """The bytes that Java writes for a map with these keys and values, in turn."""
    content = HEAD + struct.pack(">i", threshold)
    content += b"\x77\x08" + struct.pack(">ii", capacity, len(arrays) // 2)
    head = FIRST
    for array in arrays:
        if array is None:
            content += b"\x70"
            continue
        content += head + struct.pack(">i", len(array)) + array
        head = FURTHER
    return content + b"\x78"


def test_entries_come_back_in_their_order():
    """Keys and values are the bytes that an offsets topic would hold; null is a removed offset."""
    content = file_of(KEY, b'{"position":7}', b"k2", None, b"k3", b"")

    assert [(KEY, b'{"position":7}'), (b"k2", None), (b"k3", b"")] == java_offset_entries(content)


def test_an_empty_file_and_an_empty_map_have_no_offsets():
    """A map that was never used has a threshold of 0."""
    assert java_offset_entries(b"") == []
    assert java_offset_entries(file_of(threshold=0)) == []


def test_capacity_and_threshold_do_not_matter():
    """Java grows its maps as it likes."""
    content = file_of(KEY, b"{}", threshold=96, capacity=128)

    assert [(KEY, b"{}")] == java_offset_entries(content)


def test_an_array_may_be_a_reference_to_an_earlier_one():
    """Java writes one object once; the first array has the handle behind its class."""
    content = file_of(b"k1", b"{}", b"k2", None)[:-2] + bytes.fromhex("71 007E0004 78")

    assert [(b"k1", b"{}"), (b"k2", b"{}")] == java_offset_entries(content)


def test_offsets_are_reported_by_connector():
    """Removed ones, and keys that are not of offsets, are left out."""
    gone = b'["d",{"filename":"b"}]'
    content = file_of(KEY, b'{"position":7}', gone, None, b"junk", b"{}")

    assert {"c": {SourcePartition(filename="a"): {"position": 7}}} == java_offsets(content)


@pytest.mark.parametrize(
    "content",
    [
        file_of(KEY, b"{}").replace(b"java.util.HashMap", b"java.util.HashTab"),
        file_of(KEY, b"{}").replace(b"[B", b"[J"),
        file_of(KEY, b"{}").replace(FIRST, b"\x73\x72" + FIRST[2:]),
        file_of(KEY, b"{}") + b"x",
        file_of(KEY, b"{}").replace(FURTHER, bytes.fromhex("7571 007E0000")),
        file_of(KEY, b"{}", b"k", None)[:-2] + bytes.fromhex("71 007E0009 78"),
        FURTHER.join([file_of()[:-1], struct.pack(">i", 0)]),
        b"PK\x03\x04 something else altogether",
        HEAD + struct.pack(">i", 12) + b"\x77\x08" + struct.pack(">ii", 16, 2**31 - 1),
        HEAD + struct.pack(">i", 12) + b"\x77\x08" + struct.pack(">ii", 16, -1) + b"\x78",
        file_of(KEY, b"{}").replace(struct.pack(">i", len(KEY)) + KEY, struct.pack(">i", -1) + KEY),
    ],
)
def test_other_classes_and_other_files_are_refused(content: bytes):
    """No class but the two is looked at, and no size is believed."""
    with pytest.raises(OffsetsFileError, match=r"byte \d+"):
        java_offset_entries(content)


def test_a_part_of_a_file_is_refused_wherever_it_ends():
    """A worker rewrites the file in place: a copy may be a part of it, which is not less offsets."""
    content = file_of(KEY, b'{"position":7}', b"k2", None)

    for end in range(1, len(content)):
        with pytest.raises(OffsetsFileError):
            java_offset_entries(content[:end])
