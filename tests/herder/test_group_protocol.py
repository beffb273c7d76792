"""The bytes that workers of a Connect group exchange."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.herder.group_protocol import (
    Assignment,
    GroupFormatError,
    MemberFlag,
    MemberMetadata,
    MemberNotes,
    ProtocolVersion,
    decoded_assignment,
    decoded_metadata,
    encoded_assignment,
    encoded_metadata,
)

URL = "http://h:8083/"
OWNED = Assignment(leader="m-1", leader_url=URL, config_offset=13, assigned={"fs1": (-1, 0)})
ANSWER = replace(OWNED, revoked={"b": (2,)}, delay_ms=500)
MEMBER = MemberMetadata(url=URL, config_offset=13)
NOTES = MemberNotes(
    flags=MemberFlag.LEAVING | MemberFlag.UNDERSTANDS_LEAVING,
    generation=7,
    slots=4,
    version="0.1.0",
)

# As Kafka Connect 4.3.1 writes them.
METADATA = [
    (
        replace(MEMBER, version=ProtocolVersion.DEFAULT),
        "0000000e687474703a2f2f683a383038332f000000000000000d",
    ),
    (MEMBER, "0002000e687474703a2f2f683a383038332f000000000000000dffffffff"),
    (
        replace(MEMBER, allocation=OWNED),
        (
            "0002000e687474703a2f2f683a383038332f000000000000000d0000003e0002000000036d2d31000e687474703a2f2f"
            "683a383038332f000000000000000d00000001000366733100000002ffffffff000000000000000000000000"
        ),
    ),
]
ASSIGNMENTS = [
    (
        replace(OWNED, version=ProtocolVersion.DEFAULT),
        "0000000000036d2d31000e687474703a2f2f683a383038332f000000000000000d00000001000366733100000002ffffffff00000000",
    ),
    (
        ANSWER,
        (
            "0002000000036d2d31000e687474703a2f2f683a383038332f000000000000000d00000001000366733100000002ffffffff"
            "00000000000000010001620000000100000002000001f4"
        ),
    ),
]


@pytest.mark.parametrize(("metadata", "expected"), METADATA)
def test_metadata_is_that_of_kafka_connect(metadata: MemberMetadata, expected: str) -> None:
    """In both directions."""
    assert expected == encoded_metadata(metadata).hex()
    assert metadata == decoded_metadata(bytes.fromhex(expected))


@pytest.mark.parametrize(("assignment", "expected"), ASSIGNMENTS)
def test_assignments_are_those_of_kafka_connect(assignment: Assignment, expected: str) -> None:
    """In both directions."""
    assert expected == encoded_assignment(assignment).hex()
    assert assignment == decoded_assignment(bytes.fromhex(expected))


def test_what_is_missing_at_the_end_is_null() -> None:
    """As Kafka Connect's readers take it."""
    whole = encoded_metadata(MEMBER)
    assert MEMBER == decoded_metadata(whole[:-4])

    whole = encoded_assignment(ANSWER)
    assert replace(ANSWER, delay_ms=0) == decoded_assignment(whole[:-4])
    revoked = len(encoded_assignment(replace(ANSWER, version=ProtocolVersion.DEFAULT)))
    assert OWNED == decoded_assignment(whole[:revoked])


def test_what_comes_after_the_known_fields_is_passed_over() -> None:
    """Whether another client or a later headrace has written it."""
    assert MEMBER == decoded_metadata(encoded_metadata(MEMBER) + b"another's")
    assert ANSWER == decoded_assignment(encoded_assignment(ANSWER) + b"another's")
    noted = replace(MEMBER, notes=NOTES)
    assert noted == decoded_metadata(encoded_metadata(noted) + b"later")


def test_the_eager_version_carries_our_own_block_where_its_readers_pass_over_it() -> None:
    """Kafka Connect reads its fields as those of the later versions, too: revoked and the delay come before the block."""
    answer = replace(OWNED, version=ProtocolVersion.DEFAULT, leader_understands_leaving=True)
    data = encoded_assignment(answer)
    bare = encoded_assignment(replace(answer, leader_understands_leaving=False))

    assert answer == decoded_assignment(data)
    assert data.startswith(bare + bytes(8))
    noted = replace(MEMBER, version=ProtocolVersion.DEFAULT, notes=NOTES)
    assert noted == decoded_metadata(encoded_metadata(noted))
    bare = encoded_metadata(replace(noted, notes=None))
    assert encoded_metadata(noted).startswith(bare + b"\xff" * 4)


def test_notes_of_an_earlier_version_are_understood() -> None:
    """Which ended after the generation."""
    noted = encoded_metadata(replace(MEMBER, notes=NOTES))
    ends = len(encoded_metadata(MEMBER)) + 4 + 2 + 4

    assert replace(NOTES, slots=0, version="") == decoded_metadata(noted[:ends]).notes


def test_a_later_version_is_read_as_the_newest_known_one() -> None:
    """Versions only add fields."""
    later = b"\x00\x09" + encoded_metadata(MEMBER)[2:]

    assert MEMBER == decoded_metadata(later)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "a field of 2 bytes begins at 0, and there are 0"),
        ("ffff", "the version -1 is not known"),
        ("0002ffff00", "a field of 8 bytes"),
        ("00020001ff000000000000000d", "a text is not UTF-8"),
        ("00020000000000000000000d7fffffff", "a field of 2147483647 bytes"),
        ("00020000000000000000000dfffffff0", "a field of -16 bytes"),
    ],
)
def test_damaged_metadata_is_refused(data: str, said: str) -> None:
    """The error says where."""
    with pytest.raises(GroupFormatError, match=said):
        decoded_metadata(bytes.fromhex(data))


def test_a_list_longer_than_the_bytes_is_refused() -> None:
    """Before anything is made for it."""
    data = encoded_assignment(replace(OWNED, assigned={}, version=ProtocolVersion.DEFAULT))
    with pytest.raises(GroupFormatError, match="a list of 2147483647 begins"):
        decoded_assignment(data[:-4] + b"\x7f\xff\xff\xff")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(-1, 2**31 - 1)
PIECES = st.dictionaries(TEXT, st.lists(NUMBER, max_size=3).map(tuple), max_size=3)
VERSION = st.sampled_from([ProtocolVersion.COMPATIBLE, ProtocolVersion.SESSIONED])


@st.composite
def assignments(draw: st.DrawFn) -> Assignment:
    """Any assignment of the versions that have all fields."""
    return Assignment(
        version=draw(VERSION),
        error=draw(st.integers(0, 1)),
        leader=draw(TEXT),
        leader_url=draw(TEXT),
        config_offset=draw(st.integers(-1, 2**63 - 1)),
        assigned=draw(PIECES),
        revoked=draw(PIECES),
        delay_ms=draw(NUMBER),
        leader_understands_leaving=draw(st.booleans()),
    )


@st.composite
def members(draw: st.DrawFn) -> MemberMetadata:
    """Anything that a member may say; the oldest version of Kafka Connect has nothing after the offset, but ours have."""
    notes = st.builds(
        MemberNotes,
        flags=st.integers(0, 7).map(MemberFlag),
        generation=NUMBER,
        slots=NUMBER,
        version=TEXT,
    )
    noted = draw(st.none() | notes)
    return MemberMetadata(
        version=draw(VERSION if noted is None else st.sampled_from(ProtocolVersion)),
        url=draw(TEXT),
        config_offset=draw(st.integers(-1, 2**63 - 1)),
        allocation=draw(st.none() | assignments()),
        notes=noted,
    )


@given(assignments())
def test_an_assignment_comes_back_as_it_was(assignment: Assignment) -> None:
    """Whatever is in it."""
    assert assignment == decoded_assignment(encoded_assignment(assignment))


@given(members())
def test_metadata_comes_back_as_it_was(metadata: MemberMetadata) -> None:
    """Whatever is in it."""
    assert metadata == decoded_metadata(encoded_metadata(metadata))


@given(members(), st.data())
def test_damaged_bytes_are_read_or_refused(metadata: MemberMetadata, data: st.DataObject) -> None:
    """They raise nothing else."""
    damaged = bytearray(encoded_metadata(metadata))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(GroupFormatError):
        decoded_metadata(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
