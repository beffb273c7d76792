"""Transformations and predicates are validated as part of a connector."""

from __future__ import annotations

import pytest

from plugins.judged import (
    errors,
    validated,
)

MISSING = 'Missing required configuration "{}" which has no default value.'


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"transforms": "a"}, {"transforms.a.type": [MISSING.format("transforms.a.type")]}),
        (
            {"transforms": "a,,b", "transforms.a.type": "x", "transforms.b.type": "y"},
            {
                "transforms.a.type": [
                    (
                        "Invalid value x for configuration transforms.a.type: "
                        "Class x could not be found."
                    )
                ],
                "transforms..type": [MISSING.format("transforms..type")],
                "transforms.b.type": [
                    (
                        "Invalid value y for configuration transforms.b.type: "
                        "Class y could not be found."
                    )
                ],
            },
        ),
        (
            {"transforms": "a", "transforms.a.type": "HoistField$Value"},
            {"transforms.a.field": [MISSING.format("transforms.a.field")]},
        ),
        (
            {"predicates": "p,p", "predicates.p.type": "x"},
            {
                "predicates": [
                    "Invalid value [p, p] for configuration predicates: Duplicate alias provided."
                ],
                "predicates.p.type": [
                    (
                        "Invalid value x for configuration predicates.p.type: "
                        "Class x could not be found."
                    )
                ],
            },
        ),
        (
            {
                "transforms": "a",
                "transforms.a.type": "HoistField$Value",
                "transforms.a.field": "f",
                "transforms.a.negate": "true",
            },
            {
                "transforms.a.type": [
                    (
                        "Config 'transforms.a.negate' was provided but there is no config "
                        "'transforms.a.predicate' defining a predicate to be negated."
                    ),
                ]
            },
        ),
        (
            {
                "transforms": "a",
                "transforms.a.type": "org.apache.kafka.connect.transforms.Filter",
                "transforms.a.predicate": "p",
            },
            {
                "transforms.a.predicate": [
                    (
                        "Invalid value p for configuration transforms.a.predicate: "
                        "It is none of predicates."
                    )
                ],
            },
        ),
    ],
)
def test_what_is_wrong_with_an_alias_is_reported(
    changes: dict[str, str], reported: dict[str, list[str]]
):
    """In the words of Kafka Connect, at the key that it is about."""
    assert reported == errors(validated(changes))


def test_an_alias_has_a_group_of_its_own():
    """With the class, and where that is known with its condition and its own settings."""
    infos = validated({"transforms": "a", "transforms.a.type": "HoistField$Key"})

    assert "Transforms: a" in infos.groups
    places = [
        (each.definition.order, each.definition.name)
        for each in infos.configs
        if each.definition is not None and each.definition.group == "Transforms: a"
    ]
    assert ["type", "plugin.version", "field", "negate", "predicate"] == [
        name.removeprefix("transforms.a.") for _, name in sorted(places)
    ]


def test_a_broken_chain_is_reported_also_with_a_converter_that_needs_schemas():
    """Whether values get a schema in the chain is asked of a chain that may not be valid."""
    avro = {"value.converter": "avro", "value.converter.schema.registry.url": "http://localhost:1"}
    broken = {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"}

    reported = errors(validated({**avro, **broken, "predicates": "p"}))

    assert [MISSING.format("predicates.p.type")] == reported["predicates.p.type"]
