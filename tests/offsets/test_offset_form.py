"""What a request may give as offsets, with Kafka Connect's refusals."""

from __future__ import annotations

import pytest

from headrace.connect.partition import SourcePartition
from headrace.herder.errors import BadRequestError, ServerError
from headrace.offsets.validation import initial_offsets_of, offsets_to_alter
from offsets.changing import A, change

PRIMITIVE = "Offsets may only contain primitive types as values, but field"


def test_nothing_to_alter_is_a_bad_request():
    """Kafka Connect's sentence."""
    with pytest.raises(BadRequestError) as caught:
        offsets_to_alter([])

    told = "Partitions / offsets need to be provided for an alter offsets request"
    assert told == str(caught.value)


def test_no_offsets_to_preset_is_a_bad_request():
    """An empty array is a malformed form; leaving the field out is not."""
    with pytest.raises(BadRequestError, match="initial_offsets holds no partitions and offsets"):
        initial_offsets_of([])


@pytest.mark.parametrize(
    ("partition", "offset", "told"),
    [
        ("a", None, "Offsets must be specified as a Map"),
        ([], None, "Offsets must be specified as a Map"),
        ({}, 7, "Offsets must be specified as a Map"),
        ({1: "a"}, None, "Offsets may only use String keys"),
        ({}, {"f": {"x": 1}}, f"{PRIMITIVE} f contains MAP"),
        ({"f": [1]}, {}, f"{PRIMITIVE} f contains ARRAY"),
        ({}, {"f": 2**63}, f"{PRIMITIVE} f contains class java.math.BigInteger"),
        (None, {"position": 1}, "Partition objects cannot be null"),
    ],
)
def test_what_is_no_offset_is_refused(partition: object, offset: object, told: str):
    """Altering answers it with 500 as Kafka Connect does; presetting with 400 as its proposal says."""
    for read, kind in ((offsets_to_alter, ServerError), (initial_offsets_of, BadRequestError)):
        with pytest.raises(kind) as caught:
            read([change(A, {}), change(partition, offset)])
        assert told == str(caught.value)


def test_half_a_character_is_refused():
    """It cannot be stored, and whoever sent it learns which text it was."""
    with pytest.raises(BadRequestError, match="unpaired surrogate"):
        offsets_to_alter([change({"filename": "\ud83d"}, {"position": 1})])


def test_the_last_of_several_changes_of_a_partition_counts():
    """The order of its entries does not make another partition."""
    offsets = offsets_to_alter(
        [
            change({"a": 1, "b": 2}, {"position": 1}),
            change({"a": 1}, {"position": 2}),
            change({"b": 2, "a": 1}, None),
        ]
    )

    assert {SourcePartition(a=1, b=2): None, SourcePartition(a=1): {"position": 2}} == offsets


def test_values_come_as_the_store_gives_them_back():
    """Whole numbers stay whole, others are doubles, and entries are in the store's order."""
    values = {"topic": "t", "partition": 1, "cluster": "c", "f": 1.0, "t": True, "n": None}
    (offset,) = offsets_to_alter([change({}, values)]).values()

    assert offset is not None
    assert list(offset)[:2] == ["cluster", "partition"] or set(offset) == set(values)
    assert {key: (type(each), each) for key, each in values.items()} == {
        key: (type(each), each) for key, each in offset.items()
    }


def test_a_null_partition_without_an_offset_changes_nothing():
    """Kafka Connect accepts it: an empty object in the array of offsets."""
    assert offsets_to_alter([change(None, None)]) == {}
    assert initial_offsets_of([change(None, None), change(A, None)]) == {A: None}
