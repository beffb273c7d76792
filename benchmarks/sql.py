"""One projection and one filter, as Kafka Connect's transformations and as Spark SQL; both make the same records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from benchmarks.samples import FIELDS

KEPT: Final = ("id", "device", "reading")
"""The fields that stay."""

_PACKAGE = "org.apache.kafka.connect.transforms"
# Spark has to know the fields before it reads a file; the other way gets them in the same form.
_TYPED: Mapping[str, str] = {
    "csv.schemas.enable": "true",
    "files.schema": json.dumps(
        {
            "type": "record",
            "name": "Reading",
            "fields": [{"name": name, "type": ["null", "string"]} for name in FIELDS],
        }
    ),
}
AS_TRANSFORMS: Final[Mapping[str, str]] = {
    **_TYPED,
    "transforms": "kept,there",
    "transforms.kept.type": f"{_PACKAGE}.ReplaceField$Value",
    "transforms.kept.include": ",".join(KEPT),
    "transforms.there.type": f"{_PACKAGE}.Filter",
    "transforms.there.predicate": "tombstone",
    "predicates": "tombstone",
    "predicates.tombstone.type": f"{_PACKAGE}.predicates.RecordIsTombstone",
}
"""The settings of a connector of CSV files that has them done by two transformations."""

AS_SQL: Final[Mapping[str, str]] = {
    **_TYPED,
    "transforms": "sql",
    "transforms.sql.type": "headrace.transforms.SparkSql",
    "transforms.sql.select": ", ".join(KEPT),
    "transforms.sql.where": "value IS NOT NULL",
}
"""The same, done by Spark."""
