"""Transformations and their settings for hypothesis to draw."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as some

from headrace.transforms.casting import TARGETS
from transforms.generated import NAMES

FIELDS = some.lists(some.sampled_from(NAMES), max_size=2, unique=True).map(",".join)
_FIELD = some.sampled_from(NAMES)
_TARGET = some.sampled_from([name.lower() for name in TARGETS])
_RENAMES = some.sampled_from(["", "a:z", "a:b", "a:b,b:a", "q:a"])
_CASTS = some.lists(
    some.tuples(_FIELD, _TARGET), min_size=1, max_size=3, unique_by=lambda each: each[0]
)
_NULLS = some.sampled_from(["true", "false"])
_HEADERS = some.sampled_from(["h", "z"])

Drawn = Mapping[str, Mapping[str, some.SearchStrategy[str]]]
"""The settings of transformations, by their names."""

OF_STRUCTS: Drawn = {
    "Cast": {
        "spec": _CASTS.map(lambda casts: ",".join(":".join(cast) for cast in casts)) | _TARGET,
        "replace.null.with.default": _NULLS,
    },
    "ExtractField": {
        "field": _FIELD | some.sampled_from(["a.a", "a.b.c", "`a.b`.a"]),
        "field.syntax.version": some.sampled_from(["V1", "V2"]),
        "replace.null.with.default": _NULLS,
    },
    "Flatten": {"delimiter": some.sampled_from([".", "_"])},
    "HoistField": {"field": _FIELD},
    "MaskField": {"fields": FIELDS.filter(bool), "replace.null.with.default": _NULLS},
    "ReplaceField": {
        "exclude": FIELDS,
        "include": FIELDS,
        "renames": _RENAMES,
        "replace.null.with.default": _NULLS,
    },
    "SetSchemaMetadata": {"schema.name": _FIELD, "replace.null.with.default": _NULLS},
    "ValueToKey": {"fields": FIELDS.filter(bool), "replace.null.with.default": _NULLS},
}
OF_OTHERS: Drawn = {
    "DropHeaders": {"headers": _HEADERS},
    "Filter": {},
    "HeaderFrom": {
        "fields": _FIELD,
        "headers": _HEADERS,
        "operation": some.sampled_from(["move", "copy"]),
    },
    "InsertField": {
        "topic.field": some.sampled_from(["e", "e?"]),
        "timestamp.field": some.sampled_from(["f", "f?"]),
    },
    "InsertHeader": {"header": _HEADERS, "value.literal": some.sampled_from(["5", "x"])},
    "RegexRouter": {
        "regex": some.sampled_from(["top", "(t)op", "x"]),
        "replacement": some.sampled_from(["o", "$1"]),
    },
    "TimestampRouter": {
        "topic.format": some.just("${topic}-${timestamp}"),
        "timestamp.format": some.just("yyyy"),
    },
}
WITH_SIDES = frozenset((*OF_STRUCTS, "HeaderFrom", "InsertField")) - {"ValueToKey"}
"""Those of which there is one for keys and one for values."""
