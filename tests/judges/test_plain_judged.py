"""Our converters of text, bytes, numbers and headers against Kafka Connect's own, byte by byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.converters import JAVA_NAMES
from judges.comparing import our_header_columns, our_headers, ours
from judges.drawn import LEAVES, Typed, one_of_each, typed
from judges.java_judge import JavaJudge
from judges.told import Told
from project.sampling import drawn

pytestmark = pytest.mark.broker

JAVA = {name: java for java, name in JAVA_NAMES.items()}
NUMBERS = ["short", "integer", "long", "float", "double", "boolean"]


@pytest.mark.parametrize("name", ["bytes", *NUMBERS])
def test_every_type_with_and_without_schema(judge: JavaJudge, name: str):
    """What is refused there is refused here, and the other way round; also when it is a header."""
    for schema, value in one_of_each():
        for told in ([Told(schema, value, schema)], [Told(schema, value, None)]):
            theirs = judge.converted(JAVA[name], told)
            assert (theirs, told) == (ours(name, told), told)
        told = [Told(schema, value, schema)]
        theirs = judge.converted(JAVA[name], told, role="header")
        assert (theirs, told) == (our_headers(name, told), told)


@settings(max_examples=drawn(60), derandomize=True, database=None)
@given(found=some.sampled_from(LEAVES), data=some.data())
def test_any_number(judge: JavaJudge, found: Typed, data: some.DataObject):
    """Every converter of numbers, asked for any value that one of them takes."""
    schema, values = found
    rows = data.draw(some.lists(some.none() | values, min_size=1, max_size=5))
    told = [Told(schema, row, schema) for row in rows]
    for name in NUMBERS:
        assert judge.converted(JAVA[name], told) == ours(name, told)


@settings(max_examples=drawn(150), derandomize=True, database=None)
@given(found=typed(), data=some.data())
def test_any_header(judge: JavaJudge, found: Typed, data: some.DataObject):
    """The text forms of headers, one by one and all of a column."""
    schema, values = found
    rows = data.draw(some.lists(values, min_size=1, max_size=5))
    told = [Told(schema, row, schema) for row in rows]

    theirs = judge.converted(JAVA["simple"], told, role="header")

    assert theirs == our_headers("simple", told)
    assert theirs == our_header_columns("simple", told)


@settings(max_examples=drawn(150), derandomize=True, database=None)
@given(found=typed(), data=some.data())
def test_any_text(judge: JavaJudge, found: Typed, data: some.DataObject):
    """What Java prints of a value; except bytes, of which it prints no more than where they are in memory."""
    schema, values = found
    told = [Told(schema, row, schema) for row in data.draw(some.lists(values, min_size=1))]

    theirs = judge.converted(JAVA["string"], told)

    pairs = zip(theirs, ours("string", told), strict=True)
    assert [] == [pair for pair in pairs if pair[0] != pair[1] and b"[B@" not in pair[0]]
