"""Source partitions, and which task reads an object, as Aiven's S3 source has it."""

from __future__ import annotations

import pytest

from connectors.vetoes import veto
from headrace.connect import OffsetsError, SourcePartition
from headrace.connect.task import Split
from headrace.connectors.files.aiven.connector import AivenS3Connector
from headrace.connectors.files.aiven.partitions import KnownByAddress, as_ours, as_theirs, key_of
from headrace.connectors.files.aiven.shares import java_hash, shared
from headrace.offsets.codec import encoded_key
from headrace.testing.task_runs import StoredOffsets

KEYS = ["a.jsonl", "a//b", "/a", "in/t\u00e4b\t\U0001f600", "a*?[b]", "x/y/"]


@pytest.mark.parametrize("key", KEYS)
def test_a_partition_has_both_forms(key: str):
    """Whatever the key holds, byte for byte; a range keeps its place."""
    theirs = SourcePartition({"bucket": "my-bucket", "objectKey": key})
    ours = as_ours(theirs)

    assert SourcePartition(filename=f"s3://my-bucket/{key}") == ours
    assert ours is not None
    assert theirs == as_theirs(ours)
    assert (key, key) == (key_of(ours), key_of(theirs))
    ranged = SourcePartition({**theirs, "from": 1, "to": 2})
    found = as_ours(ranged)
    assert found is not None
    assert ranged == as_theirs(found)


def test_its_bytes_are_the_originals():
    """One of the two that its map, whose order changes, writes; the store takes both for one."""
    partition = SourcePartition({"bucket": "b", "objectKey": "k"})

    assert encoded_key("s3", partition) in (
        b'["s3",{"bucket":"b","objectKey":"k"}]',
        b'["s3",{"objectKey":"k","bucket":"b"}]',
    )


def test_other_partitions_are_nobodys():
    """They are neither known nor renamed."""
    other, theirs = SourcePartition(x="y"), SourcePartition({"bucket": "b", "objectKey": "k"})
    known = KnownByAddress(StoredOffsets({other: {"n": 1}, theirs: {"recordCount": 2}}))
    ours = SourcePartition(filename="s3://b/k")

    assert {ours: {"recordCount": 2}} == known.known()
    assert {"recordCount": 2} == known.offset(ours)
    assert {ours: {"recordCount": 2}} == known.offsets([ours])
    assert other == as_theirs(other)
    assert SourcePartition(filename="/a") == as_theirs(SourcePartition(filename="/a"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("k1", 3366),
        ("data/2024/part-00000.csv", 1955739896),
        ("topic-1-00000000000000000042.gz", 341236649),
        ("\u00e9", 233),
        ("\U0001f600", 1772899),
        ("polygenelubricants", -2147483648),
    ],
)
def test_the_hash_is_javas(text: str, expected: int):
    """Of UTF-16 units, with a sign."""
    assert expected == java_hash(text)


def test_objects_are_shared_out_by_the_remainder_and_read_in_order():
    """A negative hash goes where Java's floorMod says; a task without objects has no share."""
    keys = ["polygenelubricants", "k1", "hello", "a"]
    shares = shared([(key, split(key)) for key in keys], 3, java_hash)

    assert 1 == java_hash("polygenelubricants") % 3
    assert [["k1"], ["a", "hello", "polygenelubricants"]] == [
        [key_of(each.partition) for each in share] for share in shares
    ]


def split(key: str) -> Split:
    """An object to read."""
    return Split(partition=SourcePartition(filename=f"s3://b/{key}"))


class TestOffsetsOfPeople:
    """What people may set."""

    @pytest.mark.parametrize("offset", [{"recordCount": 3}, {"done": True}, None])
    def test_an_offset_of_an_object_is_accepted(self, offset: dict[str, object] | None):
        """Under bucket and key."""
        partition = SourcePartition({"bucket": "b", "objectKey": "k"})

        assert None is veto(AivenS3Connector(), {partition: offset})  # pyright: ignore[reportArgumentType]

    @pytest.mark.parametrize(
        ("partition", "told"),
        [
            ({"filename": "s3://ü/k"}, """{"filename": "s3://ü/k"} .* 'bucket' and 'objectKey'"""),
            ({"bucket": "b"}, "'bucket' and 'objectKey'"),
            ({"bucket": "b", "objectKey": ""}, "by its address"),
            ({"bucket": "b", "objectKey": "k", "x": 1}, "only 'from' and 'to'"),
        ],
    )
    def test_other_partitions_are_refused(self, partition: dict[str, str], told: str):
        """With the reason."""
        with pytest.raises(OffsetsError, match=told):
            AivenS3Connector().validate_offsets({}, {SourcePartition(partition): {"done": True}})

    def test_unknown_fields_are_refused(self):
        """As for any file."""
        partition = SourcePartition({"bucket": "b", "objectKey": "k"})

        with pytest.raises(OffsetsError, match="unknown field"):
            AivenS3Connector().validate_offsets({}, {partition: {"line": 1}})
