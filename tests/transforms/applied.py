"""Transformations by their short names, applied to one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headrace.connect.config import Problem
from headrace.connect.errors import RecordError
from headrace.connect.schema import Field, Schema, SchemaType
from headrace.connect.transforming import ColumnarTransform
from headrace.transforms.catalogue import make_transform, transform_config
from transforms.both_ways import check_both_ways
from transforms.generated import batch_of, record

Settings = Mapping[str, str]
_PACKAGE = "org.apache.kafka.connect.transforms"


def made(name: str, config: Settings) -> ColumnarTransform:
    """The transformation *name*, such as ``Cast$Value``, configured."""
    transform = make_transform(f"{_PACKAGE}.{name}", config)
    assert isinstance(transform, ColumnarTransform)
    return transform


def problems(name: str, config: Settings) -> tuple[Problem, ...]:
    """What is wrong with the settings of the transformation *name*."""
    declared = transform_config(f"{_PACKAGE}.{name}")
    assert declared is not None
    return declared.problems(config)


def become(
    name: str, config: Settings, value: object, schema: Schema | None = None
) -> tuple[Any, Schema | None]:
    """What *value* and its schema become; the same record by record and in a batch."""
    transform, given = made(name, config), record(value, schema)
    changed = transform.apply(given)
    assert changed is not None
    assert given == record(value, schema)
    check_both_ways(transform, batch_of([value, value], schema))
    return changed.value, changed.value_schema


def refusal(name: str, config: Settings, value: object, schema: Schema | None = None) -> str:
    """Why *value* is refused, record by record and in a batch."""
    transform, given = made(name, config), record(value, schema)
    check_both_ways(transform, batch_of([value], schema))
    with pytest.raises(RecordError) as caught:
        transform.apply(given)
    return caught.value.reason


def struct(*fields: tuple[str, Schema], **more: Any) -> Schema:  # noqa: ANN401 (attributes of a schema)
    """A struct of *fields*."""
    made_of = tuple(Field(name, schema) for name, schema in fields)
    return Schema(type=SchemaType.STRUCT, fields=made_of, **more)
