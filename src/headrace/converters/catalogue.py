"""Which converters there are, by their own names and by the names of Kafka Connect's classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from headrace.connect.config import Config, Problem
from headrace.connect.converting import Converter, HeaderConverter
from headrace.connect.errors import ConfigError
from headrace.converters.avro_config import AvroConverterConfig
from headrace.converters.avro_converter import AvroConverter
from headrace.converters.bytes_converter import BytesConverter
from headrace.converters.headers import ColumnHeaderConverter, SimpleHeaderConverter
from headrace.converters.json_converter import JsonConverter
from headrace.converters.string_converter import StringConverter

Role = Literal["key", "value", "header"]

_COLUMNS: Mapping[str, Callable[[], Converter]] = {
    "json": JsonConverter,
    "string": StringConverter,
    "bytes": BytesConverter,
    "avro": AvroConverter,
}
_CONFIGS: Mapping[str, type[Config]] = {
    "json": JsonConverter.config_class,
    "string": StringConverter.config_class,
    "bytes": BytesConverter.config_class,
    "avro": AvroConverterConfig,
    "simple": SimpleHeaderConverter.config_class,
}
_OF_SCHEMAS = frozenset({"avro"})

_STORAGE = "org.apache.kafka.connect.storage"
_CONVERTERS = "org.apache.kafka.connect.converters"
JAVA_NAMES: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.json.JsonConverter": "json",
    f"{_STORAGE}.StringConverter": "string",
    f"{_CONVERTERS}.ByteArrayConverter": "bytes",
    f"{_STORAGE}.SimpleHeaderConverter": "simple",
    "io.confluent.connect.avro.AvroConverter": "avro",
}
"""Our name for each of Connect's classes that we have."""

_NOT_YET = (
    *(
        f"{_CONVERTERS}.{kind}Converter"
        for kind in ("Boolean", "Double", "Float", "Integer", "Long", "Short")
    ),
    "io.confluent.connect.json.JsonSchemaConverter",
    "io.confluent.connect.protobuf.ProtobufConverter",
)


def converter_problems(
    role: Role, class_name: str, config: Mapping[str, str]
) -> tuple[Problem, ...]:
    """What is wrong with a converter and its own settings; the key of the class itself is empty.

    Pure. Called when a configuration is validated, before anything is made.
    """
    name = _KNOWN.get(class_name)
    if name is None or (name == "simple" and role != "header"):
        return (("", _unknown(role, class_name)),)
    return _CONFIGS[name].problems(config)


def needs_schema(class_name: str) -> bool:
    """Whether a converter refuses values without a schema. Pure."""
    return _KNOWN.get(class_name) in _OF_SCHEMAS


def make_converter(class_name: str, config: Mapping[str, str], is_key: bool) -> Converter:  # noqa: FBT001 (Connect's own signature)
    """A configured converter of keys or values; raises :class:`~headrace.connect.errors.ConfigError`."""
    role: Role = "key" if is_key else "value"
    made = _COLUMNS.get(_KNOWN.get(class_name, ""))
    if made is None:
        raise ConfigError([(f"{role}.converter", _unknown(role, class_name))])
    converter = made()
    converter.configure(config, is_key=is_key)
    return converter


def make_header_converter(class_name: str, config: Mapping[str, str]) -> HeaderConverter:
    """A configured converter of headers; raises :class:`~headrace.connect.errors.ConfigError`."""
    name = _KNOWN.get(class_name)
    if name is None:
        raise ConfigError([("header.converter", _unknown("header", class_name))])
    made = _COLUMNS.get(name)
    converter = ColumnHeaderConverter(made()) if made else SimpleHeaderConverter()
    converter.configure(config)
    return converter


def _unknown(role: Role, class_name: str) -> str:
    choices = ", ".join(_CONFIGS if role == "header" else _COLUMNS)
    if class_name in _NOT_YET_NAMES:
        return f"The converter {class_name} is not supported yet; there are: {choices}."
    if _KNOWN.get(class_name) == "simple":
        return f"The converter {class_name} is for headers only; there are: {choices}."
    return f"Class {class_name} could not be found. There are: {choices}."


def _also_called(java_name: str) -> tuple[str, ...]:
    """The names that Connect takes for a class: in full, without packages, and without its kind's name."""
    simple = java_name.rpartition(".")[2]
    return (
        java_name,
        simple,
        simple.removesuffix("HeaderConverter"),
        simple.removesuffix("Converter"),
    )


_KNOWN: Mapping[str, str] = {name: name for name in _CONFIGS} | {
    alias: name for java, name in JAVA_NAMES.items() for alias in _also_called(java)
}
_NOT_YET_NAMES = frozenset(alias for java in _NOT_YET for alias in _also_called(java))
