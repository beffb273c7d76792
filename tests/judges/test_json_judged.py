"""Our JSON converter against Kafka Connect's own, byte by byte."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from headrace.connect.schema import DATE, TIME, TIMESTAMP, decimal
from judges.comparing import JSON, our_plain, ours
from judges.drawn import LEAVES, Typed, one_of_each, typed
from judges.drawn_operands import loose
from judges.java_judge import JavaJudge
from judges.told import Told
from project.sampling import drawn

pytestmark = pytest.mark.broker

# Java has one class for them, so that Connect cannot tell one from another, and we can.
MOMENTS = {DATE.name, TIME.name, TIMESTAMP.name}
SETTINGS = some.fixed_dictionaries(
    {
        "schemas_enable": some.sampled_from(["true", "false"]),
        "decimal_format": some.sampled_from(["BASE64", "numeric"]),
        "replace_null_with_default": some.sampled_from(["true", "false"]),
    }
)


@settings(max_examples=drawn(150), derandomize=True, database=None)
@given(found=typed(), data=some.data(), config=SETTINGS)
def test_any_value_of_any_schema(
    judge: JavaJudge, found: Typed, data: some.DataObject, config: dict[str, str]
):
    """All types, nested, with all attributes and under all settings, refusals included."""
    schema, values = found
    rows = data.draw(some.lists(values, min_size=1, max_size=5))
    told = [Told(schema, row, schema) for row in rows]

    assert judge.converted(JSON, told, **config) == ours("json", told, **config)


@settings(max_examples=drawn(60), derandomize=True, database=None)
@given(
    found=some.sampled_from(LEAVES), data=some.data(), enabled=some.sampled_from(["true", "false"])
)
def test_any_value_without_schema(
    judge: JavaJudge, found: Typed, data: some.DataObject, enabled: str
):
    """Its class tells of which type it is; some have none."""
    schema, values = found
    told = [Told(schema, row, None) for row in data.draw(some.lists(values, min_size=1))]

    theirs = judge.converted(JSON, told, schemas_enable=enabled)

    assert theirs == ours("json", told, schemas_enable=enabled)


@settings(max_examples=drawn(80), derandomize=True, database=None)
@given(found=loose(), data=some.data(), enabled=some.sampled_from(["true", "false"]))
def test_any_map_without_schema(
    judge: JavaJudge, found: Typed, data: some.DataObject, enabled: str
):
    """Maps and lists of a connector's own: floating-point numbers, bytes, keys that are no strings."""
    schema, values = found
    assume(decimal(0).name not in repr(schema))
    told = [Told(schema, row, None) for row in data.draw(some.lists(values, min_size=1))]

    theirs = judge.converted(JSON, told, schemas_enable=enabled)

    assert theirs == our_plain("json", told, schemas_enable=enabled)


def test_values_of_another_type(judge: JavaJudge):
    """Each type under the schema of each other one: refused by both, or written alike."""
    asked = [
        [Told(of, value, schema)]
        for (schema, _), (of, value) in itertools.product(one_of_each(), one_of_each())
        if not (schema != of and {schema.name, of.name} <= MOMENTS)
    ]

    theirs = [judge.converted(JSON, each) for each in asked]

    assert theirs == [ours("json", each) for each in asked]
