"""Our transformations and predicates against Kafka Connect's own, record by record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import SchemaType
from headrace.connect.transforming import Transform
from headrace.transforms.casting import TARGETS
from headrace.transforms.catalogue import (
    JAVA_TRANSFORM_CLASSES,
    PREDICATE_CLASSES,
    make_predicate,
    make_transform,
)
from judges.answered import has_strange_time, java_record, our_record
from judges.drawn_operands import NAMES
from judges.drawn_records import Drawn, records
from judges.java_judge import JavaJudge, Refusal
from judges.known_differences import is_known
from project.sampling import drawn

pytestmark = pytest.mark.broker

FIELD = some.sampled_from(NAMES)
FIELDS = some.lists(FIELD, min_size=1, max_size=2, unique=True).map(",".join)
TARGET = some.sampled_from([name.lower() for name in TARGETS])
CASTS = some.lists(
    some.tuples(FIELD, TARGET), min_size=1, max_size=3, unique_by=lambda each: each[0]
)
NULLS = {"replace.null.with.default": some.sampled_from(["true", "false"])}
INSERTED = some.sampled_from(["e", "e!", "e?", "a"])
LITERALS = [
    "1",
    "300",
    "-1.5",
    "true",
    "null",
    "x y",
    "[1,2]",
    '{"a":1,"b":2}',
    "2020-01-02",
    '"q"',
]
PATTERNS = ["yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss", "yyyyMMdd", "EEE d MMM yyyy hh:mm a", "D w k"]

SETTINGS: Mapping[str, some.SearchStrategy[dict[str, str]]] = {
    "Cast": some.fixed_dictionaries(
        {"spec": CASTS.map(lambda casts: ",".join(map(":".join, casts))) | TARGET, **NULLS}
    ),
    "DropHeaders": some.fixed_dictionaries({"headers": some.sampled_from(["h", "h,i", "z"])}),
    "ExtractField": some.fixed_dictionaries(
        {"field": FIELD | some.sampled_from(["a.a", "b.c", "`a.b`.a"]), **NULLS},
        optional={"field.syntax.version": some.sampled_from(["V1", "V2"])},
    ),
    "Filter": some.just({}),
    "Flatten": some.fixed_dictionaries({}, optional={"delimiter": some.just("_")}),
    "HeaderFrom": some.fixed_dictionaries(
        {
            "fields": some.sampled_from(["a", "b"]),
            "headers": some.just("g"),
            "operation": some.sampled_from(["move", "copy"]),
            **NULLS,
        }
    )
    | some.fixed_dictionaries(
        {
            "fields": some.just("a,c"),
            "headers": some.just("h,g"),
            "operation": some.sampled_from(["move", "copy"]),
            **NULLS,
        }
    ),
    "HoistField": some.fixed_dictionaries({"field": FIELD}),
    "InsertField": some.fixed_dictionaries(
        {"static.field": INSERTED, "static.value": some.just("s"), **NULLS},
        optional={
            "topic.field": some.sampled_from(["t", "t!"]),
            "partition.field": some.sampled_from(["p", "p!"]),
            "timestamp.field": some.sampled_from(["s", "s!"]),
        },
    ),
    "InsertHeader": some.fixed_dictionaries(
        {"header": some.just("h"), "value.literal": some.sampled_from(LITERALS)}
    ),
    "MaskField": some.fixed_dictionaries(
        {"fields": FIELDS, **NULLS},
        optional={"replacement": some.sampled_from(["x", "7", "1.5", "300"])},
    ),
    "RegexRouter": some.fixed_dictionaries(
        {
            "regex": some.sampled_from(["t(.)p", "(t).*", "(x)", "(?<n>t)op"]),
            "replacement": some.sampled_from(["x-$1", "$0", "new"]),
        }
    ),
    "ReplaceField": some.fixed_dictionaries(
        NULLS,
        optional={
            "exclude": FIELDS,
            "include": FIELDS,
            "renames": some.sampled_from(["a:z", "a:b", "b:y,a:z"]),
        },
    ),
    "SetSchemaMetadata": some.fixed_dictionaries(
        {"schema.name": some.just("n"), **NULLS}, optional={"schema.version": some.just("4")}
    ),
    "TimestampConverter": some.fixed_dictionaries(
        {
            "target.type": some.sampled_from(["string", "unix", "Date", "Time", "Timestamp"]),
            "format": some.sampled_from(PATTERNS),
            **NULLS,
        },
        optional={
            "field": FIELD,
            "unix.precision": some.sampled_from(
                ["nanoseconds", "microseconds", "milliseconds", "seconds"]
            ),
        },
    ),
    "TimestampRouter": some.fixed_dictionaries(
        {},
        optional={
            "topic.format": some.sampled_from(["${timestamp}/${topic}", "x"]),
            "timestamp.format": some.sampled_from(PATTERNS),
        },
    ),
    "ValueToKey": some.fixed_dictionaries({"fields": FIELDS, **NULLS}),
}


# What most may go wrong in: all of a schema is made again, or all kinds of values become others.
DEEP = [each for each in JAVA_TRANSFORM_CLASSES if re.search(r"Cast|Flatten|MaskField", each)]


@pytest.mark.parametrize("name", JAVA_TRANSFORM_CLASSES)
@settings(max_examples=drawn(40), derandomize=True, database=None)
@given(data=some.data(), rows=records())
def test_records_become_the_same(
    judge: JavaJudge, name: str, data: some.DataObject, rows: Sequence[Drawn]
):
    """Topic, key, value, schemas, headers and timestamp; what is refused there is refused here."""
    _check(judge, name, data.draw(SETTINGS[_kind(name)]), rows)


@pytest.mark.parametrize("name", DEEP)
@settings(max_examples=drawn(80), derandomize=True, database=None)
@given(data=some.data(), rows=records())
def test_structs_and_maps_become_the_same(
    judge: JavaJudge, name: str, data: some.DataObject, rows: Sequence[Drawn]
):
    """More of them, where a transformation looks at every field, or at what a field holds."""
    assume(rows[0].value.of.type is SchemaType.STRUCT)
    _check(judge, name, data.draw(SETTINGS[_kind(name)]), rows)


def _check(judge: JavaJudge, name: str, config: dict[str, str], rows: Sequence[Drawn]) -> None:
    assume(not is_known(name, config, rows))
    theirs = judge.transformed(name, [each.told() for each in rows], **config)
    expected = [_expected(each) for each in theirs]

    transform = make_transform(name, config)

    assert expected == [_answer(transform, each.ours()) for each in rows]


def _kind(name: str) -> str:
    return name.rpartition(".")[2].partition("$")[0]


def _answer(transform: Transform, record: SourceRecord) -> dict[str, Any] | Refusal | None:
    try:
        changed = transform.apply(record)
        return None if changed is None else our_record(changed)
    except RecordError as error:
        return Refusal(error.reason)


def _expected(answer: dict[str, Any] | Refusal | None) -> dict[str, Any] | Refusal | None:
    """What we are to give: a time that Python has no date for is refused, as the documentation says."""
    if not isinstance(answer, dict):
        return answer
    told = java_record(answer)
    return Refusal("outside the years 1 to 9999") if has_strange_time(told) else told


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("HasHeaderKey", {"name": "h"}),
        ("RecordIsTombstone", {}),
        ("TopicNameMatches", {"pattern": "t.p"}),
        ("TopicNameMatches", {"pattern": "t"}),
    ],
)
@settings(max_examples=20, derandomize=True, database=None)
@given(rows=records())
def test_predicates_hold_of_the_same(
    judge: JavaJudge, name: str, config: dict[str, str], rows: Sequence[Drawn]
):
    """Of records with headers and without, tombstones and others."""
    (class_name,) = (each for each in PREDICATE_CLASSES if each.endswith(f".{name}"))
    theirs = judge.held(class_name, [each.told() for each in rows], **config)
    predicate = make_predicate(class_name, config)

    assert theirs == [predicate.test(each.ours()) for each in rows]
