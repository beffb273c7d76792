"""Schemas in the registry that refer to others: values are written with them, and what is wrong with them is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.schema import INT32, STRING, Field, Schema, SchemaType, arrow_type
from headrace.converters import make_converter
from headrace.converters.registry_client import (
    RegistryAccess,
    RegistryClient,
    SchemaReference,
    SchemaText,
)
from headrace.converters.schema_ids import referred_schemas
from headrace.testing.schema_registry import RegistryRefusal, SchemaRegistry

PLACE = {"type": "record", "name": "n.Place", "fields": [{"name": "x", "type": "int"}]}
WAY = {
    "type": "record",
    "name": "n.Way",
    "fields": [{"name": "from", "type": "Place"}, {"name": "to", "type": "n.Place"}],
}
TRIP = {
    "type": "record",
    "name": "Trip",
    "fields": [
        {"name": "who", "type": "string"},
        {"name": "way", "type": "n.Way"},
        {"name": "home", "type": "n.Place"},
    ],
}
OF_PLACE = {"name": "n.Place", "subject": "places", "version": 1}
OF_WAY = {"name": "n.Way", "subject": "ways", "version": 1}


def struct(*fields: tuple[str, Schema]) -> Schema:
    """A struct of *fields*."""
    return Schema(
        type=SchemaType.STRUCT, fields=tuple(Field(name, schema) for name, schema in fields)
    )


POINT = struct(("x", INT32))
ROW = struct(("who", STRING), ("way", struct(("from", POINT), ("to", POINT))), ("home", POINT))
VALUE = {"who": "a", "way": {"from": {"x": 1}, "to": {"x": 2}}, "home": {"x": 3}}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A registry with a schema that refers to another one, which refers to a third."""
    with SchemaRegistry() as own:
        own.register("places", PLACE)
        own.register("ways", WAY, [OF_PLACE])
        own.register("t-value", TRIP, [OF_WAY, OF_PLACE])
        yield own


def written(registry: SchemaRegistry, schema: Schema, value: object, **config: str) -> Any:  # noqa: ANN401
    """The bytes of *value*, when nothing may be registered."""
    given = {name.replace("_", "."): each for name, each in config.items()}
    ours = make_converter(
        "avro",
        {"schema.registry.url": registry.url, "auto.register.schemas": "false", **given},
        is_key=False,
    )
    return ours.encode("t", schema, pa.array([value], arrow_type(schema)))[0].as_py()


@pytest.mark.parametrize(
    "how", [{"use_latest_version": "true"}, {"use_schema_id": "3"}], ids=["latest", "id"]
)
def test_a_schema_that_refers_to_others_is_used(registry: SchemaRegistry, how: dict[str, str]):
    """Under its own id; what it refers to is asked for once, whatever names it."""
    found = written(registry, ROW, VALUE, **how)

    assert b"\x00\x00\x00\x00\x03" + b"\x02a\x02\x04\x06" == found
    assert ["GET /subjects/ways/versions/1", "GET /subjects/places/versions/1"] == (
        registry.requests[1:]
    )


def test_other_bytes_are_found_in_what_is_referred_to(registry: SchemaRegistry):
    """Saying where."""
    other = struct(
        ("who", STRING), ("way", struct(("from", STRING), ("to", POINT))), ("home", POINT)
    )
    value = {**VALUE, "way": {"from": "here", "to": {"x": 2}}}

    with pytest.raises(
        RecordError,
        match=r"the schema t-value, version 1: way\.from is written as string, but is record there",
    ):
        written(registry, other, value, use_latest_version="true")


def test_the_first_version_of_a_name_counts(registry: SchemaRegistry):
    """That which is met first on the way down, as in Confluent's client."""
    wider = {**PLACE, "fields": [*PLACE["fields"], {"name": "y", "type": "int", "default": 0}]}
    registry.register("places", wider)
    second = {**OF_PLACE, "version": 2}
    registry.register("t-value", {**TRIP, "doc": "2"}, [OF_WAY, second])

    assert written(registry, ROW, VALUE, use_latest_version="true").endswith(b"\x02a\x02\x04\x06")


def test_a_reference_to_a_missing_schema_is_reported(registry: SchemaRegistry):
    """By the type, the subject and the version, and who refers to it."""
    client = RegistryClient(RegistryAccess(urls=[registry.url]))
    schema = SchemaText("{}", [SchemaReference("n.Gone", "gone", 7)])

    with pytest.raises(RecordError) as caught:
        referred_schemas(client, schema, "t-value, version 1")

    assert (
        "The schema t-value, version 1, refers to n.Gone as version 7 of the subject gone, which cannot be fetched: "
        "The schema registry has no subject gone (404 Subject 'gone' not found.). Register a version whose "
        "references exist, or that contains all of its types."
    ) == str(caught.value)


def test_a_type_that_is_defined_twice_is_reported(registry: SchemaRegistry):
    """By two subjects, under two names: no one knows which is meant."""
    registry.register("more", {**PLACE, "fields": [{"name": "z", "type": "int"}]})
    registry.store.levels["t-value"] = "NONE"
    mistaken = {"name": "n.Other", "subject": "more", "version": 1}
    registry.register("t-value", {**TRIP, "doc": "2"}, [OF_WAY, OF_PLACE, mistaken])

    with pytest.raises(RecordError, match=r"cannot be understood.*n\.Place is defined twice"):
        written(registry, ROW, VALUE, use_latest_version="true")


def test_references_that_are_none_are_reported(registry: SchemaRegistry):
    """Of something that answers as a registry and is none."""
    registry.store.schema = lambda schema_id: {"schema": "{}", "references": [schema_id]}

    with pytest.raises(TaskFailedError, match="has invalid references"):
        written(registry, ROW, VALUE, use_schema_id="3")


def test_a_schema_of_its_own_is_not_one_that_refers_to_others(registry: SchemaRegistry):
    """Without registering it is asked for as it is made, and the advice says how to use the other one."""
    with pytest.raises(RecordError, match=r"does not have this schema.*use\.latest\.version=true"):
        written(registry, ROW, VALUE)


def test_the_fixture_refuses_references_that_lead_nowhere(registry: SchemaRegistry):
    """As registries do."""
    with pytest.raises(RegistryRefusal, match='No schema reference found for subject "places"'):
        registry.register("x", TRIP, [OF_WAY, {**OF_PLACE, "version": 9}])

    assert 4 == registry.register("x", json.loads('"int"'))
