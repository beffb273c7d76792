"""The available converters, by their own names and by the names of Kafka Connect's classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, Literal

from headrace.connect.config import Config, Problem
from headrace.connect.converting import Converter, HeaderConverter
from headrace.connect.errors import ConfigError
from headrace.connect.setting import Limits, Setting
from headrace.converters.headers import ColumnHeaderConverter

Role = Literal["key", "value", "header"]

_NUMBERS = ("short", "integer", "long", "float", "double", "boolean")
_COLUMNS = ("json", "string", "bytes", "avro", *_NUMBERS)
_PLACE = "headrace.converters"
_PATHS: Mapping[str, str] = {
    "json": f"{_PLACE}.json_converter:JsonConverter",
    "string": f"{_PLACE}.string_converter:StringConverter",
    "bytes": f"{_PLACE}.bytes_converter:BytesConverter",
    "avro": f"{_PLACE}.avro_converter:AvroConverter",
    **{name: f"{_PLACE}.number_converters:{name.title()}Converter" for name in _NUMBERS},
    "simple": f"{_PLACE}.headers:SimpleHeaderConverter",
}
_OF_SCHEMAS = frozenset({"avro"})
_TYPED = frozenset({"json", "string", "bytes", *_NUMBERS})
_TYPE = Setting(
    name="converter.type",
    importance="low",
    doc="The use of the converter, which the worker sets: key, value or header.",
    limits=Limits(one_of=("key", "value", "header")),
    display_name="converter.type",
)

_STORAGE = "org.apache.kafka.connect.storage"
_CONVERTERS = "org.apache.kafka.connect.converters"
JAVA_NAMES: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.json.JsonConverter": "json",
    f"{_STORAGE}.StringConverter": "string",
    f"{_CONVERTERS}.ByteArrayConverter": "bytes",
    f"{_STORAGE}.SimpleHeaderConverter": "simple",
    "io.confluent.connect.avro.AvroConverter": "avro",
    **{f"{_CONVERTERS}.{name.title()}Converter": name for name in _NUMBERS},
}
"""Our name for each supported class of Connect's."""

BYTES_CONVERTER: Final = f"{_CONVERTERS}.ByteArrayConverter"
"""The converter that passes bytes on as they are, by Java's name."""

_NOT_YET = (
    "io.confluent.connect.json.JsonSchemaConverter",
    "io.confluent.connect.protobuf.ProtobufConverter",
)


def converter_classes() -> tuple[str, ...]:
    """The classes of converters of keys and values, by Java's names, which all of them have. Pure."""
    return tuple(java for java, name in JAVA_NAMES.items() if name in _COLUMNS)


def header_converter_classes() -> tuple[str, ...]:
    """The classes of converters of headers, by Java's names. Pure."""
    return tuple(JAVA_NAMES)


def converter_class(class_name: str) -> str | None:
    """The full name of the converter that *class_name* stands for: Java's, which all of ours have. Pure.

    ``None`` for a name of none.
    """
    name = _KNOWN.get(class_name)
    return next((java for java, ours in JAVA_NAMES.items() if ours == name), None)


def converter_settings(class_name: str) -> tuple[Setting, ...]:
    """The own settings of a converter, without its role's prefix; empty for an unknown name. Pure."""
    name = _KNOWN.get(class_name)
    if name is None:
        return ()
    return (*((_TYPE,) if name in _TYPED else ()), *_config(name).settings())


def converter_problems(
    role: Role, class_name: str, config: Mapping[str, str], *, others: Sequence[str] = ()
) -> tuple[Problem, ...]:
    """What is wrong with a converter and its own settings; the key of the class itself is empty.

    *others* are offered besides our own in place of a class that is none. Pure. Called when a configuration is
    validated, before anything is made.
    """
    name = _KNOWN.get(class_name)
    if name is None or (name == "simple" and role != "header"):
        return (("", _unknown(role, class_name, others)),)
    return _config(name).problems(config)


def is_bytes(class_name: str) -> bool:
    """Whether a converter passes bytes on as they are. Pure."""
    return _KNOWN.get(class_name) == "bytes"


def needs_schema(class_name: str) -> bool:
    """Whether a converter refuses values without a schema. Pure."""
    return _KNOWN.get(class_name) in _OF_SCHEMAS


def make_converter(class_name: str, config: Mapping[str, str], is_key: bool) -> Converter:  # noqa: FBT001 (Connect's own signature)
    """A configured converter of keys or values; raises :class:`~headrace.connect.errors.ConfigError`.

    One that is not headrace's own is named as ``package.module:Class`` by the driver, which has checked it.
    """
    role: Role = "key" if is_key else "value"
    name = _placed(class_name)
    if name is None or (name in _PATHS and name not in _COLUMNS):
        raise ConfigError([(f"{role}.converter", _unknown(role, class_name))])
    converter: Converter = _class(name)()
    converter.configure(config, is_key=is_key)
    return converter


def make_header_converter(class_name: str, config: Mapping[str, str]) -> HeaderConverter:
    """A configured converter of headers, named as in :func:`make_converter`, with which it raises."""
    name = _placed(class_name)
    if name is None:
        raise ConfigError([("header.converter", _unknown("header", class_name))])
    made = _class(name)()
    is_of_headers = hasattr(made, "encode_header")
    converter: HeaderConverter = made if is_of_headers else ColumnHeaderConverter(made)
    converter.configure(config)
    return converter


def _class(name: str) -> type[Any]:
    """A converter's class. Its module is imported only now, because some modules import libraries that load slowly."""
    module, _, attribute = _PATHS.get(name, name).partition(":")
    return attrgetter(attribute)(import_module(module))


def _placed(class_name: str) -> str | None:
    """Our own name of a converter, or the path of another author's."""
    return _KNOWN.get(class_name, class_name if ":" in class_name else None)


def _config(name: str) -> type[Config]:
    return _class(name).config_class


def _unknown(role: Role, class_name: str, others: Sequence[str] = ()) -> str:
    choices = ", ".join((*(_PATHS if role == "header" else _COLUMNS), *others))
    if class_name in _NOT_YET_NAMES:
        return f"The converter {class_name} is not supported yet; valid ones are: {choices}."
    if _KNOWN.get(class_name) == "simple":
        return (
            f"Class class {converter_class(class_name)} does not implement the Converter interface"
        )
    return f"Class {class_name} could not be found. Valid ones are: {choices}."


def _also_called(java_name: str) -> tuple[str, ...]:
    """The names that Connect accepts for a class: in full, without packages, and without its kind's name."""
    simple = java_name.rpartition(".")[2]
    return (
        java_name,
        simple,
        simple.removesuffix("HeaderConverter"),
        simple.removesuffix("Converter"),
    )


_KNOWN: Mapping[str, str] = (
    {name: name for name in _PATHS}
    | {path: name for name, path in _PATHS.items()}
    | {alias: name for java, name in JAVA_NAMES.items() for alias in _also_called(java)}
)
_NOT_YET_NAMES = frozenset(alias for java in _NOT_YET for alias in _also_called(java))
