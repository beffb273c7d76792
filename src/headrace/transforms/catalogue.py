"""The available transformations and predicates, by the names of Kafka Connect's classes and our own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from headrace.connect.config import Config
from headrace.connect.errors import ConfigError
from headrace.connect.transforming import Predicate, Transform
from headrace.transforms.record_part import KEY, VALUE, RecordPart

_PACKAGE = "org.apache.kafka.connect.transforms"
_PLACE = "headrace.transforms"
_SIDES: Mapping[str, RecordPart] = {"Key": KEY, "Value": VALUE}

_OF_OPERANDS: Mapping[str, str] = {
    "Cast": f"{_PLACE}.cast:Cast",
    "ExtractField": f"{_PLACE}.extract_field:ExtractField",
    "Flatten": f"{_PLACE}.flatten:Flatten",
    "HeaderFrom": f"{_PLACE}.header_from:HeaderFrom",
    "HoistField": f"{_PLACE}.hoist_field:HoistField",
    "InsertField": f"{_PLACE}.insert_field:InsertField",
    "MaskField": f"{_PLACE}.mask_field:MaskField",
    "ReplaceField": f"{_PLACE}.replace_field:ReplaceField",
    "SetSchemaMetadata": f"{_PLACE}.set_schema_metadata:SetSchemaMetadata",
    "TimestampConverter": f"{_PLACE}.timestamp_converter:TimestampConverter",
}
_OF_RECORDS: Mapping[str, str] = {
    "DropHeaders": f"{_PLACE}.drop_headers:DropHeaders",
    "Filter": f"{_PLACE}.filter:Filter",
    "InsertHeader": f"{_PLACE}.insert_header:InsertHeader",
    "RegexRouter": f"{_PLACE}.regex_router:RegexRouter",
    "TimestampRouter": f"{_PLACE}.timestamp_router:TimestampRouter",
    "ValueToKey": f"{_PLACE}.value_to_key:ValueToKey",
}
_PREDICATES: Mapping[str, str] = {
    "HasHeaderKey": f"{_PLACE}.predicates:HasHeaderKey",
    "RecordIsTombstone": f"{_PLACE}.predicates:RecordIsTombstone",
    "TopicNameMatches": f"{_PLACE}.predicates:TopicNameMatches",
}
_OURS: Mapping[str, str] = {"SparkSql": f"{_PLACE}.spark_sql:SparkSql"}
JAVA_TRANSFORM_CLASSES: Final = (
    *(f"{_PACKAGE}.{name}${side}" for name in _OF_OPERANDS for side in _SIDES),
    *(f"{_PACKAGE}.{name}" for name in _OF_RECORDS),
)
"""Kafka Connect's transformations, by Java's names."""

TRANSFORM_CLASSES: Final = (*JAVA_TRANSFORM_CLASSES, *(f"{_PLACE}.{name}" for name in _OURS))
"""The transformations, by their full names."""

PREDICATE_CLASSES: Final = tuple(f"{_PACKAGE}.predicates.{name}" for name in _PREDICATES)
"""The predicates, by Java's names."""


def transform_config(class_name: str) -> type[Config] | None:
    """The settings of a transformation; ``None`` for an unknown name. Pure, but imports its module."""
    path = _transform_path(class_name)
    return None if path is None else _class(path).config_class


def predicate_config(class_name: str) -> type[Config] | None:
    """The settings of a predicate; ``None`` for an unknown name. Pure, but imports its module."""
    path = _predicate_path(class_name)
    return None if path is None else _class(path).config_class


def make_transform(class_name: str, config: Mapping[str, str]) -> Transform:
    """A configured transformation; raises :class:`~headrace.connect.errors.ConfigError`."""
    path = _transform_path(class_name)
    if path is None:
        raise ConfigError([("type", f"Class {class_name} could not be found.")])
    side = _SIDES.get(class_name.partition("$")[2])
    made: Transform = _class(path)() if side is None else _class(path)(side)
    made.configure(config)
    return made


def make_predicate(class_name: str, config: Mapping[str, str]) -> Predicate:
    """A configured predicate; raises :class:`~headrace.connect.errors.ConfigError`."""
    path = _predicate_path(class_name)
    if path is None:
        raise ConfigError([("type", f"Class {class_name} could not be found.")])
    made: Predicate = _class(path)()
    made.configure(config)
    return made


def _transform_path(class_name: str) -> str | None:
    ours = _OURS.get(class_name.removeprefix(f"{_PLACE}."))
    if ours is not None:
        return ours
    simple, _, side = class_name.removeprefix(f"{_PACKAGE}.").partition("$")
    return _OF_OPERANDS.get(simple) if side in _SIDES else _OF_RECORDS.get(simple + side)


def _predicate_path(class_name: str) -> str | None:
    return _PREDICATES.get(class_name.removeprefix(f"{_PACKAGE}.predicates."))


def _class(path: str) -> type[Any]:
    """A class by its path. Its module is imported at this call, not before."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
