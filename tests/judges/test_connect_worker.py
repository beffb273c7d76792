"""A whole worker of Kafka Connect against ours: the same connector files, the same lines, the same bytes in Kafka."""

from __future__ import annotations

import json

import pytest

from headrace.transforms.catalogue import JAVA_TRANSFORM_CLASSES, PREDICATE_CLASSES
from judges.both_workers import Both, run_both
from judges.chains import CASES, ChainCase
from judges.landed import Landed, Topics

Rows = dict[tuple[str, int, int], object]

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(scope="module")
def both(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """All chains, run once by each of the two."""
    return run_both(bootstrap, tmp_path_factory.mktemp("both"), CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_lands(both: Both, case: ChainCase) -> None:
    """Topics, partitions, order, keys, values and headers, byte for byte."""
    theirs, ours = _of(both.theirs, case), _of(both.ours, case)

    assert case.keeps_any == bool(theirs)
    assert [] == _differing(theirs, ours)


def _of(topics: Topics, case: ChainCase) -> Rows:
    """The records of *case* with their places; offsets are counted from the first of each partition."""
    return {
        (topic, partition, number): _told(each, case)
        for (topic, partition), records in topics.items()
        if topic.partition(".")[0] == case.name
        for number, each in enumerate(records)
    }


def _differing(theirs: Rows, ours: Rows) -> list[tuple[object, ...]]:
    places = sorted({*theirs, *ours})
    return [
        (*place, theirs.get(place), ours.get(place))
        for place in places
        if theirs.get(place) != ours.get(place)
    ]


def _told(record: Landed, case: ChainCase) -> object:
    if not case.unordered:
        return record
    return json.loads(record.key or b""), record.value, record.headers


def test_every_transformation_and_predicate_is_in_a_chain() -> None:
    """None is left out."""
    settings = [case.config("f") for case in CASES]
    named = {value for each in settings for value in each.values()}

    def plain(name: str) -> str:
        return name.partition("$")[0]

    wanted = {plain(each) for each in (*JAVA_TRANSFORM_CLASSES, *PREDICATE_CLASSES)}

    assert set() == wanted - set(map(plain, named))
