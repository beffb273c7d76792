"""Each transformation does to batches what it does to records, whatever their schemas and values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.batch import SourceBatch
from transforms.applied import made
from transforms.both_ways import check_both_ways
from transforms.drawn_settings import FIELDS, OF_STRUCTS
from transforms.generated import ANY, batches

MASKED = {
    "fields": FIELDS.filter(bool),
    "replacement": some.sampled_from(["x", "7", "1.23", "3e2"]),
}


@pytest.mark.parametrize("name", OF_STRUCTS)
@given(drawn=some.data(), batch=ANY, side=some.sampled_from(["$Key", "$Value"]))
def test_batches_and_records_become_the_same(
    name: str, drawn: some.DataObject, batch: SourceBatch, side: str
) -> None:
    """A batch becomes what its rows become, schemas included, or its rows have to go one by one."""
    config = drawn.draw(some.fixed_dictionaries(OF_STRUCTS[name]))
    place = "" if name == "ValueToKey" else side

    check_both_ways(made(f"{name}{place}", config), batch)


@given(batch=batches(), config=some.fixed_dictionaries(MASKED))
def test_replacements_are_the_same(batch: SourceBatch, config: Mapping[str, str]) -> None:
    """A custom replacement masks a column as it masks its values."""
    check_both_ways(made("MaskField$Value", config), batch)
