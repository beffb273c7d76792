"""The Avro converter: its settings, its wire format, and what it asks of the registry."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from fastavro import parse_schema

from converters.avro_examples import array, column, struct, whole
from headrace.connect.converting import Converter
from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.schema import INT32, INT64, OPTIONAL_STRING, STRING, TIMESTAMP, Field, Schema
from headrace.converters import converter_problems, make_converter
from headrace.converters.registry_client import RegistryAccess, RegistryClient
from headrace.converters.schema_ids import REFUSED_SECONDS, IdChoice, Origin, SchemaIds
from headrace.testing.schema_registry import SchemaRegistry

INT = '"int"'
ROW = struct(Field("id", INT64), Field("name", OPTIONAL_STRING), name="n.Row")
NAME = "io.confluent.connect.avro.AvroConverter"
STRATEGIES = "io.confluent.kafka.serializers.subject."


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A registry of the test's own."""
    with SchemaRegistry() as own:
        yield own


def converter(registry: SchemaRegistry, *, is_key: bool = False, **config: str) -> Converter:
    """A converter that asks *registry*."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    return make_converter(NAME, {"schema.registry.url": registry.url, **given}, is_key=is_key)


def rows(*values: object) -> pa.Array:
    """A column of rows."""
    return column(ROW, *values)


def test_a_value_is_a_zero_its_schemas_id_and_the_datum(registry: SchemaRegistry):
    """Another library reads it with the schema that the registry has under the id."""
    registry.register("other", "string")
    given = [{"id": 1, "name": "é"}, {"id": -300, "name": None}]

    found = converter(registry).encode("t", ROW, rows(*given)).to_pylist()

    assert [b"\x00\x00\x00\x00\x02"] * 2 == [each[:5] for each in found]
    reported = parse_schema(registry.schema(2))
    assert given == [whole(each[5:], reported) for each in found]
    assert b"\x00\x00\x00\x00\x02\x02\x02\x04\xc3\xa9" == found[0]


def test_the_registry_is_asked_once_for_each_schema_and_topic(registry: SchemaRegistry):
    """Not for each batch, nor for each object that brings an equal schema of its own."""
    ours = converter(registry)
    for schema in (ROW, dataclasses.replace(ROW), ROW):
        ours.encode("t", schema, rows({"id": 1, "name": None}))
    ours.encode("u", ROW, rows({"id": 1, "name": None}))

    assert ["POST /subjects/t-value/versions", "POST /subjects/u-value/versions"] == (
        registry.requests
    )


def test_ids_are_forgotten_only_when_there_are_too_many(registry: SchemaRegistry):
    """What was asked for the longest time ago goes first."""
    ours = converter(registry, max_schemas_per_subject="2", schemas_cache_config="1")
    for topic in ("a", "b", "a", "c", "a", "b"):
        ours.encode(topic, ROW, rows({"id": 1, "name": None}))

    asked = [each.split("/")[2] for each in registry.requests]
    assert ["a-value", "b-value", "c-value", "b-value"] == asked


def test_keys_have_a_subject_of_their_own(registry: SchemaRegistry):
    """And need be no records."""
    found = converter(registry, is_key=True).encode("t", STRING, pa.array(["x"]))

    assert [b"\x00\x00\x00\x00\x01\x02x"] == found.to_pylist()
    assert ["t-key"] == registry.store.subjects()


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "t-value"),
        ("RecordNameStrategy", "n.Row"),
        ("TopicRecordNameStrategy", "t-n.Row"),
    ],
)
def test_subjects_by_strategy(registry: SchemaRegistry, strategy: str, subject: str):
    """With Confluent's name in full, or without the package."""
    for name in (strategy, f"{STRATEGIES}{strategy}"):
        ours = converter(registry, value_subject_name_strategy=name)
        ours.encode("t", ROW, rows({"id": 1, "name": None}))

    assert [subject] == registry.store.subjects()


def test_a_strategy_by_record_needs_a_record(registry: SchemaRegistry):
    """The sentence names the setting."""
    ours = converter(registry, value_subject_name_strategy="RecordNameStrategy")

    with pytest.raises(RecordError, match=r"value\.subject\.name\.strategy") as caught:
        ours.encode("t", OPTIONAL_STRING, pa.array([None, "x"]))

    assert 1 == caught.value.row


def test_tombstones_stay_null_and_need_no_registry(registry: SchemaRegistry):
    """A column of nulls only has no schema to ask about."""
    ours = converter(registry)

    assert [None, None] == ours.encode("t", None, pa.nulls(2)).to_pylist()
    assert [None] == ours.encode("t", ROW.as_optional(), rows(None)).to_pylist()
    assert [] == ours.encode("t", ROW, rows()).to_pylist()
    assert [] == registry.requests
    mixed = ours.encode("t", ROW.as_optional(), rows(None, {"id": 1, "name": None}))
    assert [None, b"\x00\x00\x00\x00\x01\x02\x02\x00"] == mixed.to_pylist()
    with pytest.raises(RecordError, match="Found null value for non-optional schema"):
        ours.encode("t", ROW, rows(None))


def test_values_without_a_schema_are_refused(registry: SchemaRegistry):
    """With the converters that write them."""
    with pytest.raises(RecordError, match="use the converter json, string or bytes") as caught:
        converter(registry).encode("t", None, pa.array([None, "x"]))

    assert 1 == caught.value.row


def test_a_schema_that_is_refused_names_the_first_value(registry: SchemaRegistry):
    """So that the object that brought it can be named."""
    ours = converter(registry)
    ours.encode("t", ROW, rows({"id": 1, "name": None}))
    other = struct(Field("other", INT64), name="n.Row").as_optional()

    with pytest.raises(RecordError, match="not compatible") as caught:
        ours.encode("t", other, column(other, None, {"other": 1}))

    assert 1 == caught.value.row


def test_a_registry_that_is_away_may_come_back(registry: SchemaRegistry):
    """Nothing is remembered of the attempt."""
    registry.moments.extend([503] * 2)
    ours = converter(registry, max_retries="1", retries_wait_ms="0")

    with pytest.raises(RetriableError):
        ours.encode("t", ROW, rows({"id": 1, "name": None}))
    found = ours.encode("t", ROW, rows({"id": 1, "name": None}))

    assert b"\x00\x00\x00\x00\x01\x02\x00" == found[0].as_py()


def test_a_refusal_is_remembered_for_a_while(registry: SchemaRegistry):
    """With errors.tolerance=all each record is tried on its own; only now and then is the registry asked."""
    now = [0.0]
    client = RegistryClient(RegistryAccess(urls=[registry.url]))
    ids = SchemaIds(client, IdChoice(origin=Origin.FOUND), most=9, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(RecordError, match="no subject s"):
            ids.id_of("s", "int", INT)
    asked = len(registry.requests)
    registry.register("s", "int")
    now[0] = REFUSED_SECONDS

    assert (1, 1) == (asked, ids.id_of("s", "int", INT))


# ------------------------------------------------------------------ without registering


def test_without_registering_the_schema_must_be_there(registry: SchemaRegistry):
    """It is looked up, and nothing is added."""
    with pytest.raises(RecordError, match=r"auto\.register\.schemas=true"):
        converter(registry, auto_register_schemas="false").encode(
            "t", ROW, rows({"id": 1, "name": None})
        )
    converter(registry).encode("t", ROW, rows({"id": 1, "name": None}))

    ours = converter(registry, auto_register_schemas="false")
    found = ours.encode("t", ROW, rows({"id": 1, "name": None}))

    assert b"\x00\x00\x00\x00\x01" == found[0].as_py()[:5]
    assert "POST /subjects/t-value" == registry.requests[-1]


LATEST = {
    "type": "record",
    "name": "Better",
    "doc": "with words",
    "fields": [
        {"name": "id", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "name", "type": ["null", "string"], "doc": "whose"},
    ],
}


@pytest.mark.parametrize(
    "how", [{"use_latest_version": "true"}, {"use_schema_id": "1"}], ids=["latest", "id"]
)
def test_another_schema_is_used_when_it_describes_the_same_bytes(
    registry: SchemaRegistry, how: dict[str, str]
):
    """Names of types, docs, and what a number means do not matter."""
    registry.register("t-value", LATEST)

    ours = converter(registry, auto_register_schemas="false", **how)
    found = ours.encode("t", ROW, rows({"id": 1, "name": None}))

    assert [b"\x00\x00\x00\x00\x01\x02\x00"] == found.to_pylist()


INNER = struct(Field("x", INT32), name="n.In")


@pytest.mark.parametrize(
    ("schema", "latest", "difference"),
    [
        (
            struct(Field("a", INT32), Field("b", INT32)),
            [("b", "int"), ("a", "int")],
            "the fields are a, b, but b, a there",
        ),
        (struct(Field("a", INT32)), [("a", "long")], "a is written as int, but is long there"),
        (
            struct(Field("a", OPTIONAL_STRING)),
            [("a", ["string", "null"])],
            "a is written as null, but is string there",
        ),
        (
            struct(Field("a", array(INNER))),
            [
                (
                    "a",
                    {"type": "array", "items": {"type": "record", "name": "I", "fields": []}},
                )
            ],
            "the fields of a.. are x, but  there",
        ),
        (
            struct(Field("a", TIMESTAMP)),
            [("a", {"type": "long", "logicalType": "timestamp-micros"})],
            "a is of the logical type timestamp-millis, but not there",
        ),
    ],
)
def test_a_schema_that_describes_other_bytes_is_refused(
    registry: SchemaRegistry, schema: Schema, latest: list[tuple[str, object]], difference: str
):
    """Saying where; for it would be read as something else."""
    fields = [{"name": name, "type": kind} for name, kind in latest]
    registry.register("t-value", {"type": "record", "name": "Row", "fields": fields})
    ours = converter(registry, auto_register_schemas="false", use_latest_version="true")
    value = {each.name: _some(each.schema) for each in schema.fields}

    with pytest.raises(RecordError, match=difference):
        ours.encode("t", schema, column(schema, value))


def _some(schema: Schema) -> object:
    return [] if schema.value_schema else None if schema.optional else 1


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("config", "key", "sentence"),
    [
        ({}, "schema.registry.url", "Missing required"),
        ({"schema.registry.url": "registry:8081"}, "schema.registry.url", "must be a URL"),
        ({"schema.registry.url": "ftp://r"}, "schema.registry.url", "must be a URL"),
        ({"schema.registry.url": "http://r:x"}, "schema.registry.url", "must be a URL"),
        ({"use.latest.version": "true"}, "use.latest.version", "auto.register.schemas=false"),
        ({"use.schema.id": "4"}, "use.schema.id", "auto.register.schemas=false"),
        ({"basic.auth.user.info": "a:b"}, "basic.auth.user.info", "source=USER_INFO"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "basic.auth.user.info", "needed"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "basic.auth.credentials.source", "one of"),
        ({"value.subject.name.strategy": "My"}, "value.subject.name.strategy", "one of"),
        ({"generalized.sum.type.support": "true"}, "generalized.sum.type.support", "leave it at 'false'"),
        ({"schema.registry.ssl.truststore.location": "x"}, "schema.registry.ssl.truststore.location", "remove it"),
        ({"auto.register.schema": "false"}, "auto.register.schema", "is not supported"),
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_would_be_ignored_are_refused(
    config: dict[str, str], key: str, sentence: str
):
    """Where a configuration is validated, which asks no registry."""
    given = (
        config if key == "schema.registry.url" else {"schema.registry.url": "http://r", **config}
    )

    ((found, reported),) = converter_problems("value", "avro", given)

    assert key == found
    assert sentence in reported


def test_settings_that_change_nothing_are_accepted():
    """Defaults of what is not supported, and what other converters left behind."""
    given = {
        "schema.registry.url": "http://a:8081, https://b/path",
        "schemas.enable": "true",
        "generalized.sum.type.support": "false",
        "latest.compatibility.strict": "true",
    }

    assert () == converter_problems("key", NAME, given)


def test_a_password_is_sent_and_never_shown():
    """It is one of those settings that are hidden."""
    with SchemaRegistry(user_info="me:secret") as guarded:
        config = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "me:secret"}
        ours = make_converter("avro", {"schema.registry.url": guarded.url, **config}, is_key=False)
        ours.encode("t", ROW, rows({"id": 1, "name": None}))

    ((_, reported),) = converter_problems(
        "value", "avro", {**config, "schema.registry.url": "me:secret@r"}
    )
    assert "secret" not in reported


def test_the_fixture_keeps_what_registries_keep(registry: SchemaRegistry):
    """Each request is there to be looked at, with what was sent."""
    converter(registry).encode("t", ROW, rows({"id": 1, "name": None}))

    (body,) = registry.bodies
    assert {"schema"} == set(body)
    assert registry.schema(1) == json.loads(body["schema"])
