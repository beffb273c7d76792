"""Halves of surrogate pairs in JSON lines: passed on as they are, and refused by their name where values are made."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from headrace.connect.errors import RecordError
from headrace.formats.by_name import JSONL
from headrace.formats.surrogates import first_half, without_halves
from headrace.sources.json_numbers import parsed
from headrace.testing.format_suite import Found, pieces_of, reader_of

HALVES = [r'"\ud800"', r'"\udc00"', r'{"\uDBFF":"\ud800\ud83d\ude00"}', r'["\ud800x", "\\\uDFFF"]']
PIECES = some.sampled_from(
    [
        '"',
        "\\",
        "\\u",
        "\\ud800",
        "\\udc00",
        "\\ud83d\\ude00",
        "\\ud8",
        "u",
        "é",
        "[",
        "]",
        ",",
        "1",
        " ",
    ]
)


def values(content: str) -> list[object]:
    """What is read of *content*, bad lines as their reasons."""
    return [
        each.value if isinstance(each, Found) else each.reason
        for each in pieces_of(reader_of(JSONL, content.encode()))
    ]


def test_halves_of_pairs_pass_unchanged():
    """Between lines of any other kind."""
    lines = ["1", *HALVES, "null", '"\\ud83d\\ude00"']

    assert lines == values("\n".join(lines))


def is_text(told: object) -> bool:
    """Whether UTF-8 can hold all texts in *told*."""
    try:
        json.dumps(told, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("line", [*HALVES, '"é\\ud800"'])
def test_a_value_with_half_a_pair_is_refused_by_its_name(line: str):
    """With the escape as it is written there."""
    with pytest.raises(
        RecordError, match=r"The escape \\u[dD][0-9a-fA-F]{3} is a lone surrogate"
    ) as caught:
        parsed(line, "error")

    assert "truncated" not in str(caught.value)


@pytest.mark.parametrize("line", [r'"\ud83d\ude00"', r'"\\ud800"', '"d800"'])
def test_what_only_looks_like_half_a_pair_is_a_value(line: str):
    """A pair, and a backslash that is escaped itself."""
    assert json.loads(line) == parsed(line, "error")


def test_beside_half_a_pair_the_reason_is_the_real_one():
    """Which is not that the half is there."""
    bad = [r'"\ud800', r'["\udc00", 01]', r'"\ud800" 1', r'"\ud800\x"']
    reasons = values("\n".join(["1", *bad, "2"]))

    assert ["1", "2"] == [reasons[0], reasons[-1]]
    assert not any("surrogate" in str(each) for each in reasons)
    assert ["truncated" in str(each) for each in reasons[1:-1]] == [True, False, False, False]


@given(
    some.lists(PIECES, max_size=12).map("".join)
    | some.lists(PIECES, max_size=8).map(lambda found: f'"{"".join(found)}"')
)
@example('"\\\\ud800"')
@example('"\\\\\\ud800"')
def test_what_pythons_reader_takes_is_passed_on(line: str):
    """And what it does not take is not: half a pair is the only thing that is understood in another way."""
    try:
        told = json.loads(line)
    except ValueError:
        assert values(line) != [line]
        return
    assert values(line) == [line]
    half = first_half(line.encode())
    assert (half is None) == is_text(told)
    assert len(without_halves(line.encode())) == len(line.encode())


LEAVES = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(some.characters())
)
TREES = some.recursive(
    LEAVES,
    lambda inner: some.lists(inner) | some.dictionaries(some.text(some.characters()), inner),
    max_leaves=8,
)


@given(some.lists(TREES, max_size=6))
def test_any_documents_pass_unchanged(documents: list[object]):
    """Texts with halves of pairs among them."""
    lines = [json.dumps(each) for each in documents]

    assert lines == values("\n".join(lines))
