"""Each transformation does to batches what it does to records, whatever their schemas and values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.batch import SourceBatch
from headrace.transforms.cast_spec import TARGETS
from transforms.applied import made
from transforms.both_ways import check_both_ways
from transforms.generated import LOOSE, NAMES, batch_of, batches, typed

FIELDS = some.lists(some.sampled_from(NAMES), max_size=2, unique=True).map(",".join)
FIELD = some.sampled_from(NAMES)
TARGET = some.sampled_from([name.lower() for name in TARGETS])
RENAMES = some.sampled_from(["", "a:z", "a:b", "a:b,b:a", "q:a"])
CASTS = some.lists(
    some.tuples(FIELD, TARGET), min_size=1, max_size=3, unique_by=lambda each: each[0]
)
NULLS = some.sampled_from(["true", "false"])

SETTINGS = {
    "Cast": {
        "spec": CASTS.map(lambda casts: ",".join(":".join(cast) for cast in casts)) | TARGET,
        "replace.null.with.default": NULLS,
    },
    "ExtractField": {
        "field": FIELD | some.sampled_from(["a.a", "a.b.c", "`a.b`.a"]),
        "field.syntax.version": some.sampled_from(["V1", "V2"]),
        "replace.null.with.default": NULLS,
    },
    "Flatten": {"delimiter": some.sampled_from([".", "_"])},
    "HoistField": {"field": FIELD},
    "MaskField": {"fields": FIELDS.filter(bool), "replace.null.with.default": NULLS},
    "ReplaceField": {
        "exclude": FIELDS,
        "include": FIELDS,
        "renames": RENAMES,
        "replace.null.with.default": NULLS,
    },
    "SetSchemaMetadata": {"schema.name": FIELD, "replace.null.with.default": NULLS},
    "ValueToKey": {"fields": FIELDS.filter(bool), "replace.null.with.default": NULLS},
}
UNTYPED = some.lists(LOOSE, min_size=1, max_size=4).map(batch_of)
ANY = batches() | batches(typed()) | UNTYPED
MASKED = {
    "fields": FIELDS.filter(bool),
    "replacement": some.sampled_from(["x", "7", "1.23", "3e2"]),
}


@pytest.mark.parametrize("name", SETTINGS)
@given(drawn=some.data(), batch=ANY, side=some.sampled_from(["$Key", "$Value"]))
def test_batches_and_records_become_the_same(
    name: str, drawn: some.DataObject, batch: SourceBatch, side: str
) -> None:
    """A batch becomes what its rows become, schemas included, or its rows have to go one by one."""
    config = drawn.draw(some.fixed_dictionaries(SETTINGS[name]))
    place = "" if name == "ValueToKey" else side

    check_both_ways(made(f"{name}{place}", config), batch)


@given(batch=batches(), config=some.fixed_dictionaries(MASKED))
def test_replacements_are_the_same(batch: SourceBatch, config: Mapping[str, str]) -> None:
    """A custom replacement masks a column as it masks its values."""
    check_both_ways(made("MaskField$Value", config), batch)
