"""The Java judge itself: records through transformations, and predicates."""

from __future__ import annotations

import pytest

from headrace.connect.schema import INT32, STRING, TIMESTAMP, Field, Schema, SchemaType
from judges.java_judge import JavaJudge, Refusal
from judges.told import Told, record_told, schema_told, typed, untyped

pytestmark = pytest.mark.broker

PACKAGE = "org.apache.kafka.connect.transforms"
ROW = Schema(type=SchemaType.STRUCT, fields=(Field("a", INT32),), name="row")


def test_a_record_comes_back_with_all_its_parts(judge: JavaJudge):
    """Topic, key, value, headers and timestamp, each with its schema and the class of its value."""
    record = record_told(
        "t",
        typed(ROW, {"a": 1}),
        key=untyped(STRING, "k"),
        headers=[("h", typed(STRING, "x"))],
        timestamp=7,
    )
    config = {"timestamp.field": "ts"}
    told = schema_told(ROW)
    told["fields"].append(["ts", schema_told(TIMESTAMP.as_optional())])

    answers = judge.transformed(f"{PACKAGE}.InsertField$Value", [record], **config)

    expected = {
        "topic": "t",
        "partition": None,
        "timestamp": 7,
        "key": {"schema": None, "value": ["String", "k"]},
        "value": {
            "schema": told,
            "value": ["Struct", [["a", ["Integer", "1"]], ["ts", ["Date", "7"]]]],
        },
        "headers": [{"name": "h", "schema": schema_told(STRING), "value": ["String", "x"]}],
    }
    assert [expected] == answers


def test_records_are_dropped_and_refused_one_by_one(judge: JavaJudge):
    """A transformation may give nothing, or an error."""
    record = record_told("t", Told(STRING, "x", STRING))
    assert [None] == judge.transformed(f"{PACKAGE}.Filter", [record])
    assert [Refusal("")] * 2 == judge.transformed(f"{PACKAGE}.Flatten$Value", [record] * 2)


def test_predicates_hold_or_not(judge: JavaJudge):
    """One answer for each record."""
    records = [record_told(topic, typed(STRING, "x")) for topic in ("a", "b")]
    name = f"{PACKAGE}.predicates.TopicNameMatches"
    assert [False, True] == judge.held(name, records, pattern="b|c")
