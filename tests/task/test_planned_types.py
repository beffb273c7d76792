"""Of which types records are where Spark gets them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.connect.errors import TaskFailedError
from headrace.connect.record import RecordSchemas
from headrace.connect.schema import INT64, STRING, TIMESTAMP, Field, Schema, SchemaType, decimal
from headrace.task.connector_spec import PluginChoice, StageChoice
from headrace.task.sql.planned_types import planned_types
from headrace.task.sql.step import FrameTypes

ORDER = Schema(
    type=SchemaType.STRUCT, fields=(Field("id", STRING), Field("at", TIMESTAMP.as_optional()))
)
CARRIED = pa.struct([("id", pa.utf8()), ("at", pa.timestamp("us", tz="UTC"))])
READ = pa.struct([pa.field("id", pa.utf8(), nullable=False), CARRIED.field("at")])


def step(name: str, **config: str) -> StageChoice:
    """One of Kafka Connect's transformations."""
    path = f"org.apache.kafka.connect.transforms.{name}"
    return StageChoice(transform=PluginChoice(class_name=path, config=config))


def test_values_are_text_where_nothing_is_known() -> None:
    """So are keys; documents are text, too."""
    assert FrameTypes(value=pa.utf8(), key=pa.utf8()) == planned_types(None, ())


def test_a_schema_tells_the_types() -> None:
    """Spark is to take every field for nullable; what is required is known besides. Instants are in microseconds."""
    schemas = RecordSchemas(value=ORDER, key=INT64)

    assert FrameTypes(value=CARRIED, required=READ, key=pa.int64()) == planned_types(schemas, ())


@pytest.mark.parametrize(
    ("stage", "types"),
    [
        (
            step("HoistField$Value", field="it"),
            FrameTypes(
                value=pa.struct([("it", CARRIED)]),
                required=pa.struct([pa.field("it", READ, nullable=False)]),
            ),
        ),
        (step("ExtractField$Value", field="at"), FrameTypes(value=pa.timestamp("us", tz="UTC"))),
        (
            step("ValueToKey", fields="id"),
            FrameTypes(value=CARRIED, required=READ, key=pa.struct([("id", pa.utf8())])),
        ),
    ],
)
def test_transformations_before_change_them(stage: StageChoice, types: FrameTypes) -> None:
    """As they change a record."""
    assert types == planned_types(RecordSchemas(value=ORDER), [stage])


def test_a_transformation_that_lets_no_example_through_is_named() -> None:
    """With what to do instead."""
    with pytest.raises(
        TaskFailedError, match=r"after .*Filter is unknown, .* Put SparkSql before these"
    ):
        planned_types(None, [step("Filter")])


def test_a_decimal_that_spark_has_no_type_for_is_refused_with_its_field() -> None:
    """Before a job begins, which would fail each time."""
    price = Schema(type=SchemaType.ARRAY, value_schema=decimal(-2))
    order = Schema(type=SchemaType.STRUCT, fields=(Field("id", STRING), Field("prices", price)))

    with pytest.raises(TaskFailedError, match=r"value\.prices\.item is a Decimal of scale -2, but"):
        planned_types(RecordSchemas(value=order), ())
