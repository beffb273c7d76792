"""Maven's notation of versions and of ranges of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.plugins.versions import version_order, version_ranges

ASCENDING = (
    "0.9",
    "1.0-alpha-1",
    "1.0-beta2",
    "1.0-m3",
    "1.0-rc1",
    "1.0-cr2",
    "1.0-SNAPSHOT",
    "1.0",
    "1.0-sp",
    "1.0-abc",
    "1.0-xyz",
    "1.0.1",
    "1.2",
    "1.10-rc1",
    "1.10",
    "2",
)
VERSIONS = st.sampled_from(ASCENDING)


def allows(spec: str, version: str) -> bool:
    """Whether one of the ranges of *spec* holds *version*."""
    return any(each.holds(version) for each in version_ranges(spec))


def test_versions_are_in_maven_s_order():
    """Words before a release, the release, words behind it; numbers by their size."""
    assert ASCENDING == tuple(sorted(ASCENDING, key=version_order))
    assert len(ASCENDING) == len({version_order(each) for each in ASCENDING})


@pytest.mark.parametrize("same", ["1", "1.0.0", "1.0-ga", "1.0.Final", "1-RELEASE", "1.0-final"])
def test_zeros_at_the_end_and_words_for_a_release_do_not_count(same: str):
    """As in Maven."""
    assert version_order("1.0") == version_order(same)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.integers(0, 3))
def test_a_version_matches_itself_with_any_trailing_zeros(parts: list[int], zeros: int):
    """By itself, and in brackets."""
    version = ".".join(map(str, parts))

    for spec in (version, f"[{version}]", f"[{version},{version}]", f" {version} "):
        assert allows(spec, version + ".0" * zeros)
    assert not allows(version, f"{version}.0.1")


@given(VERSIONS, VERSIONS, VERSIONS)
def test_a_range_holds_what_lies_between_its_ends(one: str, other: str, version: str):
    """With those ends that stand by square brackets."""
    low, high = sorted((one, other), key=version_order)
    place = ASCENDING.index(version)
    begin, end = ASCENDING.index(low), ASCENDING.index(high)

    assert (begin <= place <= end) == allows(f"[{low},{high}]", version)
    if low != high:
        assert (begin < place < end) == allows(f"({low},{high})", version)
    assert (begin <= place) == allows(f"[{low},)", version)
    assert (place < end) == allows(f"(,{high})", version)


@given(st.lists(st.tuples(VERSIONS, VERSIONS), min_size=1, max_size=3), VERSIONS)
def test_of_several_ranges_one_is_enough(ends: list[tuple[str, str]], version: str):
    """And each of them says what it is; they are in order."""
    bounds = sorted({each for pair in ends for each in pair}, key=version_order)
    specs = [f"[{low},{high})" for low, high in zip(bounds[::2], bounds[1::2], strict=False)]
    assume(specs)

    assert any(allows(each, version) for each in specs) == allows(",".join(specs), version)
    assert specs == [str(each) for each in version_ranges(", ".join(specs))]


@pytest.mark.parametrize("spec", [None, "", " ", "latest"])
def test_without_a_wish_every_version_will_do(spec: str | None):
    """There is nothing to fulfil."""
    assert () == version_ranges(spec)


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ("[[1", "Unbounded range: [[1"),
        ("[1,", "Unbounded range: [1,"),
        ("[1.0,2.0),(1,4", "Unbounded range: [1.0,2.0),(1,4"),
        ("[2,1]", "Range defies version ordering: [2,1]"),
        ("[5,5)", "Range defies version ordering: [5,5)"),
        ("(1]", "Single version must be surrounded by []: (1]"),
        ("(1)", "Single version must be surrounded by []: (1)"),
        ("[4,5]]", "Only fully-qualified sets allowed in multiple set scenario: [4,5]]"),
        ("[1,3],[2,4]", "Ranges overlap: [1,3],[2,4]"),
    ],
)
def test_what_is_no_range_is_refused(spec: str, reported: str):
    """As recorded from a worker of Kafka Connect 4.3.1."""
    with pytest.raises(ValueError, match=re.escape(reported)) as refused:
        version_ranges(spec)

    assert reported == str(refused.value)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("a,b", "[a,b]"),
        ("1 2", "[1 2,1 2]"),
        ("[1,2,3]", "[1,2,3]"),
        (" [4,5] ", "[4,5]"),
        ("[4,5],", "[4,5]"),
        ("1.x,", "[1.x,]"),
        ("[1,2][3,4]", "[1,2],[3,4]"),
    ],
)
def test_odd_notations_are_understood(spec: str, shown: str):
    """As by a worker of Kafka Connect 4.3.1."""
    assert shown == ",".join(map(str, version_ranges(spec)))
