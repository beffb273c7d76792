"""Connectors of class FileStreamSource with a chain each, as a worker of Kafka Connect and ours take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Step = tuple[str, Mapping[str, str]]
File = Literal["awkward", "numbers", "dates", "far dates"]

TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
_PREDICATES: Mapping[str, Mapping[str, str]] = {
    "tombstone": {"type": f"{TRANSFORMS}.predicates.RecordIsTombstone"},
    "marked": {"type": f"{TRANSFORMS}.predicates.HasHeaderKey", "name": "mark"},
    "routed": {"type": f"{TRANSFORMS}.predicates.TopicNameMatches", "pattern": ".*[.]routed"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCase:
    """One connector: *settings* beside the file and the topic, whose lines go through *steps*.

    *partitions* above one are for records with keys, whose place says the key. *keeps_any* is false where no record
    is left; *unordered* where a map without schema is written, whose entries Java keeps in a hash table.
    """

    name: str
    steps: Sequence[Step] = ()
    file: File = "awkward"
    settings: Mapping[str, str]
    partitions: int = 1
    keeps_any: bool = True
    unordered: bool = False

    def config(self, path: str) -> dict[str, str]:
        """The connector's configuration for the file at *path*."""
        return {
            "name": self.name,
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": path,
            "topic": f"{self.name}.lines",
            "topic.creation.default.partitions": str(self.partitions),
            "topic.creation.default.replication.factor": "1",
            **dict(_chain_settings(self.steps)),
            **self.settings,
        }


def _chain_settings(steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    if steps:
        yield "transforms", ",".join(f"step{number}" for number in range(len(steps)))
    for number, (name, settings) in enumerate(steps):
        yield f"transforms.step{number}.type", f"{TRANSFORMS}.{name}"
        for key, value in settings.items():
            yield f"transforms.step{number}.{key}", value
    used = {settings["predicate"] for _, settings in steps if "predicate" in settings}
    if used:
        yield "predicates", ",".join(sorted(used))
    for alias in used:
        for key, value in _PREDICATES[alias].items():
            yield f"predicates.{alias}.{key}", value


def _converter(role: str, name: str, *, schemas: bool | None = None) -> dict[str, str]:
    told = {} if schemas is None else {f"{role}.converter.schemas.enable": str(schemas).lower()}
    return {f"{role}.converter": name, **told}


TEXT = _converter("value", STRING)
ENVELOPES = _converter("value", _JSON, schemas=True)
DOCUMENTS = _converter("value", _JSON, schemas=False)
TOLERANT = {"errors.tolerance": "all"}
HOIST: Step = ("HoistField$Value", {"field": "line"})
ORIGIN: Step = ("InsertField$Value", {"static.field": "origin", "static.value": "désk 7"})
LITERALS: Sequence[Step] = [
    ("InsertHeader", {"header": name, "value.literal": literal})
    for name, literal in [
        ("text", 'a "b" ü'),
        ("number", "300"),
        ("large", "12345678901234"),
        ("fraction", "1.5"),
        ("flag", "true"),
        ("day", "2026-11-22"),
        ("list", "[1,2,300]"),
        ("map", '{"a":1,"b":2}'),
        ("text", "again"),
    ]
]

CASES: Final[Sequence[ChainCase]] = [
    ChainCase(name="as-text", settings=TEXT),
    ChainCase(name="as-envelopes", settings=ENVELOPES),
    ChainCase(name="as-documents", settings=DOCUMENTS),
    ChainCase(
        name="long",
        steps=[
            HOIST,
            ("InsertField$Value", {"static.field": "secret", "static.value": "s3cret"}),
            ("ReplaceField$Value", {"renames": "line:text"}),
            ("MaskField$Value", {"fields": "secret", "replacement": "***"}),
            ("ValueToKey", {"fields": "text"}),
            ("ExtractField$Key", {"field": "text"}),
        ],
        settings=ENVELOPES,
        partitions=3,
    ),
    ChainCase(
        name="masked",
        steps=[HOIST, ORIGIN, ("MaskField$Value", {"fields": "line"})],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="struct-keys",
        steps=[HOIST, ORIGIN, ("ValueToKey", {"fields": "line,origin"})],
        settings={**DOCUMENTS, **_converter("key", _JSON, schemas=True)},
        partitions=3,
    ),
    ChainCase(
        name="struct-keys-as-text",
        steps=[
            HOIST,
            ("ValueToKey", {"fields": "line"}),
            ("ExtractField$Value", {"field": "line"}),
        ],
        settings=TEXT,
        partitions=3,
    ),
    ChainCase(
        name="changed-keys",
        steps=[
            HOIST,
            ORIGIN,
            ("ValueToKey", {"fields": "line,origin"}),
            ("HoistField$Key", {"field": "key"}),
            ("Flatten$Key", {"delimiter": "-"}),
            ("MaskField$Key", {"fields": "key-origin", "replacement": "x"}),
            ("ReplaceField$Key", {"renames": "key-line:l,key-origin:o"}),
            ("SetSchemaMetadata$Key", {"schema.name": "the.Key", "schema.version": "2"}),
        ],
        settings={**TEXT, **_converter("key", _JSON, schemas=True)},
        partitions=3,
    ),
    ChainCase(
        name="keys-without-schema",
        steps=[
            ("HoistField$Key", {"field": "k"}),
            ("InsertField$Key", {"static.field": "origin", "static.value": "désk"}),
            ("HoistField$Key", {"field": "outer"}),
            ("Flatten$Key", {}),
            ("InsertField$Key", {"topic.field": "topic"}),
            ("Cast$Key", {"spec": "topic:string"}),
        ],
        settings={**TEXT, **_converter("key", _JSON, schemas=False)},
        unordered=True,
    ),
    ChainCase(
        name="whole-numbers",
        steps=[("HoistField$Value", {"field": "n"}), ("Cast$Value", {"spec": "n:int32"})],
        file="numbers",
        settings={**ENVELOPES, **TOLERANT},
    ),
    ChainCase(
        name="bytes-of-numbers",
        steps=[("Cast$Value", {"spec": "int64"})],
        file="numbers",
        settings={
            **_converter("value", "org.apache.kafka.connect.converters.LongConverter"),
            **TOLERANT,
        },
    ),
    ChainCase(
        name="fractions",
        steps=[("Cast$Value", {"spec": "float64"})],
        file="numbers",
        settings={**ENVELOPES, **TOLERANT},
    ),
    ChainCase(
        name="fractions-as-text",
        steps=[("Cast$Value", {"spec": "float32"}), ("Cast$Value", {"spec": "string"})],
        file="numbers",
        settings={**TEXT, **TOLERANT},
    ),
    ChainCase(
        name="wrapped-numbers",
        steps=[
            ("HoistField$Value", {"field": "n"}),
            ("Cast$Value", {"spec": "n:float64"}),
            ("Cast$Value", {"spec": "n:int8"}),
            ("ValueToKey", {"fields": "n"}),
            ("Cast$Key", {"spec": "n:boolean"}),
            ("ExtractField$Key", {"field": "n"}),
        ],
        file="numbers",
        settings={**DOCUMENTS, **_converter("key", _JSON, schemas=False), **TOLERANT},
        partitions=3,
    ),
    ChainCase(
        name="flags",
        steps=[("Cast$Value", {"spec": "boolean"})],
        file="numbers",
        settings={**DOCUMENTS, **TOLERANT},
    ),
    ChainCase(
        name="flattened",
        steps=[
            HOIST,
            ORIGIN,
            ("HoistField$Value", {"field": "inner"}),
            ("HoistField$Value", {"field": "outer"}),
            ("InsertField$Value", {"topic.field": "topic!"}),
            ("Flatten$Value", {"delimiter": "_"}),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="deep",
        steps=[
            ("HoistField$Value", {"field": "in.ner"}),
            ("HoistField$Value", {"field": "outer"}),
            ("ExtractField$Value", {"field": "outer.`in.ner`", "field.syntax.version": "V2"}),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(name="structs-as-text", steps=[HOIST, ORIGIN], settings=TEXT),
    ChainCase(
        name="chosen-fields",
        steps=[
            HOIST,
            ORIGIN,
            ("InsertField$Value", {"topic.field": "topic"}),
            ("ReplaceField$Value", {"include": "topic,line", "renames": "line:text"}),
            ("SetSchemaMetadata$Value", {"schema.name": "a.Line", "schema.version": "7"}),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="copied-headers",
        steps=[
            HOIST,
            ORIGIN,
            (
                "HeaderFrom$Value",
                {"fields": "line,origin", "headers": "l,o", "operation": "copy"},
            ),
        ],
        settings=DOCUMENTS,
    ),
    ChainCase(
        name="moved-headers",
        steps=[
            HOIST,
            ORIGIN,
            (
                "HeaderFrom$Value",
                {"fields": "line,origin", "headers": "l,o", "operation": "move"},
            ),
            ("DropHeaders", {"headers": "o,nothing"}),
        ],
        settings={**ENVELOPES, **_converter("header", _JSON, schemas=True)},
    ),
    ChainCase(name="literals", steps=LITERALS, settings=TEXT),
    ChainCase(
        name="literals-as-envelopes",
        steps=LITERALS,
        settings={**TEXT, **_converter("header", _JSON, schemas=True)},
    ),
    ChainCase(
        name="literals-as-text",
        steps=[*LITERALS, ("DropHeaders", {"headers": "text"})],
        settings={**TEXT, **_converter("header", STRING)},
    ),
    ChainCase(
        name="routed",
        steps=[
            ("RegexRouter", {"regex": "(\\w+)[.](l)(?<rest>.*)", "replacement": "$1.${rest}-$2"})
        ],
        settings=TEXT,
    ),
    ChainCase(
        name="routed-by-day",
        steps=[
            (
                "TimestampRouter",
                {"topic.format": "${topic}.${timestamp}", "timestamp.format": "yyyy-MM-dd"},
            )
        ],
        settings=DOCUMENTS,
    ),
    ChainCase(
        name="if-routed",
        steps=[
            ("InsertHeader", {"header": "early", "value.literal": "1", "predicate": "routed"}),
            ("RegexRouter", {"regex": "(.*)lines", "replacement": "$1routed"}),
            ("InsertHeader", {"header": "late", "value.literal": "2", "predicate": "routed"}),
            ("HoistField$Value", {"field": "x", "predicate": "routed", "negate": "true"}),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="if-marked",
        steps=[
            ("InsertHeader", {"header": "mark", "value.literal": "yes"}),
            ("HoistField$Value", {"field": "line", "predicate": "marked"}),
            ("Filter", {"predicate": "marked", "negate": "true"}),
            ("DropHeaders", {"headers": "mark", "predicate": "marked"}),
            (
                "InsertField$Value",
                {"static.field": "a", "static.value": "b", "predicate": "marked"},
            ),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="facts",
        steps=[
            HOIST,
            (
                "InsertField$Value",
                {"topic.field": "t!", "partition.field": "p?", "timestamp.field": "at"},
            ),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="times-as-text",
        steps=[
            ("InsertHeader", {"header": "h", "value.literal": "1"}),
            HOIST,
            ("InsertField$Value", {"timestamp.field": "at"}),
            (
                "TimestampConverter$Value",
                {"field": "at", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSS"},
            ),
        ],
        settings=DOCUMENTS,
    ),
    ChainCase(
        name="days",
        steps=[("TimestampConverter$Value", {"target.type": "Date", "format": "yyyy-MM-dd"})],
        file="dates",
        settings={**ENVELOPES, **TOLERANT},
    ),
    ChainCase(
        name="instants",
        steps=[
            HOIST,
            (
                "TimestampConverter$Value",
                {
                    "field": "line",
                    "target.type": "unix",
                    "format": "yyyy-MM-dd",
                    "unix.precision": "seconds",
                },
            ),
            ("ValueToKey", {"fields": "line"}),
            ("ExtractField$Key", {"field": "line"}),
        ],
        file="dates",
        settings={
            **ENVELOPES,
            **_converter("key", "org.apache.kafka.connect.converters.LongConverter"),
            **TOLERANT,
        },
        partitions=3,
    ),
    ChainCase(
        name="rewritten-days",
        steps=[
            ("TimestampConverter$Value", {"target.type": "Timestamp", "format": "yyyy-MM-dd"}),
            (
                "TimestampConverter$Value",
                {"target.type": "string", "format": "EEE, d MMM yyyy G D"},
            ),
        ],
        file="dates",
        settings={**TEXT, **TOLERANT},
    ),
    ChainCase(
        name="far-instants",
        steps=[
            (
                "TimestampConverter$Value",
                {"target.type": "unix", "format": "yyyy-MM-dd", "unix.precision": "microseconds"},
            )
        ],
        file="far dates",
        settings=ENVELOPES,
    ),
    ChainCase(
        name="tombstones",
        steps=[
            HOIST,
            ("InsertField$Value", {"partition.field": "p"}),
            ("ValueToKey", {"fields": "line"}),
            ("ExtractField$Key", {"field": "line"}),
            ("ExtractField$Value", {"field": "p"}),
            ("Filter", {"predicate": "tombstone", "negate": "true"}),
        ],
        settings=DOCUMENTS,
        partitions=3,
    ),
    ChainCase(
        name="tombstones-as-envelopes",
        steps=[
            HOIST,
            ("InsertField$Value", {"partition.field": "p"}),
            ("ExtractField$Value", {"field": "p"}),
            ("InsertHeader", {"header": "null", "value.literal": "1", "predicate": "tombstone"}),
        ],
        settings=ENVELOPES,
    ),
    ChainCase(
        name="no-tombstones",
        steps=[("Filter", {"predicate": "tombstone"}), HOIST],
        settings=DOCUMENTS,
    ),
    ChainCase(
        name="nothing-left",
        steps=[("Filter", {"predicate": "tombstone", "negate": "true"})],
        settings=TEXT,
        keeps_any=False,
    ),
]
