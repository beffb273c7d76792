"""What a connector returns without a schema comes to a transformation as it is, although it travels as JSON."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.transforming import Transform
from headrace.task.batching import batches_of
from headrace.task.chain import Chain, Stage
from headrace.task.connector_spec import ErrorPolicy
from headrace.task.error_handling import RetryWithBackoff
from headrace.task.frames import Records, Refused
from headrace.task.plain_records import plain_row
from headrace.task.slot_report import Progress
from transforms.applied import made
from transforms.drawn_settings import OF_STRUCTS
from transforms.generated import LOOSE, batch_of, record


class Colour(str, enum.Enum):  # noqa: UP042 (a text whose name is not what it is worth)
    """A text with a name."""

    RED = "r"


@pytest.mark.parametrize("name", OF_STRUCTS)
@given(drawn=some.data(), values=some.lists(LOOSE, min_size=1, max_size=3))
def test_a_chain_does_what_its_transformation_does(
    name: str, drawn: some.DataObject, values: Sequence[Any]
) -> None:
    """To bytes, to numbers that are none, and to maps with keys that are no strings, too."""
    config = drawn.draw(some.fixed_dictionaries(OF_STRUCTS[name]))
    transform = made(name if name == "ValueToKey" else f"{name}$Value", config)
    records = [record(each) for each in values]

    assert [_alone(transform, each) for each in records] == _through_chain(transform, records)


@given(values=some.lists(LOOSE, min_size=1, max_size=3))
def test_a_row_is_the_record_that_it_was_made_from(values: Sequence[Any]) -> None:
    """Whatever JSON has words for."""
    batch = batch_of(values)

    rows = [plain_row(batch, row, record(each)).value for row, each in enumerate(values)]

    assert repr(list(values)) == repr(rows)


def test_a_row_has_values_of_its_own() -> None:
    """Dictionaries, lists and scalars of Python's own kinds, which are no one else's."""
    given_value = {"a": [Colour.RED, (1, 2)], "b": {"c": enum.IntEnum("N", "one")["one"]}}

    row = plain_row(batch_of([given_value]), 0, record(given_value)).value

    assert {"a": ["r", [1, 2]], "b": {"c": 1}} == row
    assert [str, list, int] == [type(each) for each in (*row["a"], row["b"]["c"])]


def _alone(transform: Transform, given_record: SourceRecord) -> str:
    """What *transform* makes of a record, as it would be sent; ``refused`` for nothing."""
    try:
        changed = transform.apply(given_record)
        assert changed is not None
        return _sent(changed)
    except RecordError:
        return "refused"


def _sent(changed: SourceRecord) -> str:
    columns = (
        column_of(changed.value_schema, [changed.value]),
        column_of(changed.key_schema, [changed.key]),
    )
    return repr([(str(each.type), each.to_pylist()) for each in columns])


def _through_chain(transform: Transform, records: Sequence[SourceRecord]) -> list[str]:
    retrying = RetryWithBackoff(
        ErrorPolicy(), Progress(), wait=lambda *_: None, ending=lambda: True
    )
    chain = Chain([Stage(transform=transform)], retrying=retrying, tolerates=True)
    polled = [Records(batch, originals) for batch, originals in batches_of(records)]
    reported = list[str]()
    for frame in chain.frames(polled):
        if isinstance(frame, Refused):
            reported.append("refused")
        else:
            assert isinstance(frame, Records), f"nothing is dropped, but {type(frame)} was"
            reported += [_row_sent(frame, row) for row in range(len(frame.batch))]
    return reported


def _row_sent(frame: Records, row: int) -> str:
    batch = frame.batch.slice(row, 1)
    columns = (batch.values, column_of(None, [None]) if batch.keys is None else batch.keys)
    return repr([(str(each.type), each.to_pylist()) for each in columns])
