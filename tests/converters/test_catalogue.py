"""Converters by name."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConfigError
from headrace.converters import JAVA_NAMES, converter_problems, make_converter
from headrace.converters.avro_converter import AvroConverter
from headrace.converters.bytes_converter import BytesConverter
from headrace.converters.json_converter import JsonConverter
from headrace.converters.number_converters import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from headrace.converters.string_converter import StringConverter

THERE_ARE = "json, string, bytes, avro, short, integer, long, float, double, boolean"
# What the Avro converter cannot be without, and the others take no notice of.
NEEDED = {"schema.registry.url": "http://registry:8081"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("json", JsonConverter),
        ("org.apache.kafka.connect.json.JsonConverter", JsonConverter),
        ("JsonConverter", JsonConverter),
        ("Json", JsonConverter),
        ("string", StringConverter),
        ("org.apache.kafka.connect.storage.StringConverter", StringConverter),
        ("bytes", BytesConverter),
        ("org.apache.kafka.connect.converters.ByteArrayConverter", BytesConverter),
        ("avro", AvroConverter),
        ("io.confluent.connect.avro.AvroConverter", AvroConverter),
        ("AvroConverter", AvroConverter),
        ("Avro", AvroConverter),
        ("short", ShortConverter),
        ("org.apache.kafka.connect.converters.IntegerConverter", IntegerConverter),
        ("LongConverter", LongConverter),
        ("Float", FloatConverter),
        ("double", DoubleConverter),
        ("org.apache.kafka.connect.converters.BooleanConverter", BooleanConverter),
    ],
)
def test_converters_have_connects_names(name: str, kind: type):
    """Short names, Java's names and Connect's short forms of them name the same converters."""
    assert kind is type(make_converter(name, NEEDED, is_key=False))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "io.confluent.connect.json.JsonSchemaConverter",
            (
                "The converter io.confluent.connect.json.JsonSchemaConverter is not supported yet; "
                f"valid ones are: {THERE_ARE}."
            ),
        ),
        ("nope", f"Class nope could not be found. Valid ones are: {THERE_ARE}."),
        (
            "simple",
            (
                "Class class org.apache.kafka.connect.storage.SimpleHeaderConverter does not implement the "
                "Converter interface"
            ),
        ),
    ],
)
def test_other_names_are_refused(name: str, sentence: str):
    """The sentence says what there is, where a converter is made and where it is validated."""
    assert (("", sentence),) == converter_problems("key", name, {})
    with pytest.raises(ConfigError) as caught:
        make_converter(name, {}, is_key=True)
    assert (("key.converter", sentence),) == caught.value.problems


def test_settings_are_validated_without_making_anything():
    """The problems of a converter's own settings come with their keys."""
    ((key, _),) = converter_problems("value", "json", {"schemas.enable": "x"})
    assert "schemas.enable" == key


def test_every_java_name_is_accepted():
    """Each class that is listed can be used for headers."""
    found = [converter_problems("header", name, NEEDED) for name in JAVA_NAMES]

    assert [()] * len(JAVA_NAMES) == found
