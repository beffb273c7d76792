"""Configurations of connectors that keep their offsets in a group, and pass record batches on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from doubles.copied_positions import PATH
from doubles.copying_connector import GROUP
from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.connect.errors import ConfigError
from headrace.converters import BYTES_CONVERTER
from headrace.offsets.target import OffsetTopic, TargetGroup
from headrace.task.connector_spec import BoundaryKind, ConnectorSpec, Delivery
from plugins.judged import errors, key, run_spec, validator

COPYING = "doubles.copying_connector:CopyingConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
CONNECTOR = {"name": "c", "connector.class": COPYING}
MODULES = {"plugin.modules": "doubles.copying_connector"}
EXACTLY_ONCE = {**MODULES, "exactly.once.source.support": "enabled", "group.id": "w"}


def spec(worker: Mapping[str, object] | None = None, **settings: str) -> ConnectorSpec:
    """What such a connector runs with; an underscore stands for a dot."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return run_spec(validator({**EXACTLY_ONCE, **(worker or {})}), {**CONNECTOR, **given})


def test_its_offsets_are_in_the_group() -> None:
    """Whatever offsets topic the worker has; the group is reached as the tasks write."""
    found = run_spec(
        validator({**EXACTLY_ONCE, "bootstrap.servers": "b:1"}),
        {
            **CONNECTOR,
            "producer.override.security.protocol": "SSL",
            "producer.override.linger.ms": "5",
        },
    )

    assert TargetGroup(group_id="connect-c", codec=PATH, config={"alias": "a"}) == found.offsets
    assert found.offsets_topic is None
    assert found.offsets_group is not None
    assert GROUP == found.offsets_group.group
    assert {"bootstrap.servers": "b:1", "security.protocol": "SSL"} == dict(
        found.offsets_group.connection
    )


def test_a_slot_gets_the_same() -> None:
    """As JSON values."""
    found = spec()

    assert found.offsets == ConnectorSpec.from_message(found.as_message()).offsets
    assert ConnectorSpec.from_message(found.as_message()).takes_encoded


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        ({}, True),
        ({"header_converter": "simple"}, True),
        ({"key_converter": "ByteArrayConverter", "value_converter": BYTES_CONVERTER}, True),
        ({"value_converter": "string"}, False),
        ({"key_converter": "json"}, False),
        (
            {"transforms": "a", "transforms_a_type": "org.apache.kafka.connect.transforms.Filter"},
            False,
        ),
    ],
)
def test_batches_are_passed_on_where_nothing_looks_at_records(
    settings: dict[str, str], *, takes: bool
) -> None:
    """Otherwise its tasks return decoded ones."""
    assert takes is spec(**settings).takes_encoded


def test_only_a_sender_for_groups_can_pass_batches_on() -> None:
    """A connector of another kind with the same converters has the client library's."""
    plain = {"name": "c", "connector.class": "file_stream", "file": "/nowhere", "topic": "t"}
    both = {"key.converter": "bytes", "value.converter": "bytes"}

    found = run_spec(validator(EXACTLY_ONCE), {**plain, **both})

    assert not found.takes_encoded
    assert OffsetTopic(name="g-offsets") == found.offsets
    assert found.offsets_group is None


def test_its_converters_are_those_for_bytes() -> None:
    """The worker's would read what the source's writers meant for others, as MirrorMaker's do; named ones are used."""
    found = spec(value_converter="string")

    assert [BYTES_CONVERTER, "string", BYTES_CONVERTER] == [
        each.class_name
        for each in (found.key_converter, found.value_converter, found.header_converter)
    ]
    infos = validator(MODULES).validate(CONNECTOR)
    assert {} == errors(infos)
    for name in ("key.converter", "value.converter", "header.converter"):
        shown = key(infos, name)
        assert BYTES_CONVERTER == shown.value.value
        assert shown.definition is not None
        assert BYTES_CONVERTER == shown.definition.default


@pytest.mark.parametrize(
    ("worker", "settings", "delivery", "boundary"),
    [
        ({}, {}, Delivery.EXACTLY_ONCE, BoundaryKind.POLL),
        ({}, {"off": "true"}, Delivery.AT_LEAST_ONCE, BoundaryKind.INTERVAL),
        (
            {"exactly.once.source.support": "disabled"},
            {},
            Delivery.AT_LEAST_ONCE,
            BoundaryKind.INTERVAL,
        ),
    ],
)
def test_the_worker_and_the_connector_may_do_without_transactions(
    worker: dict[str, str], settings: dict[str, str], delivery: Delivery, boundary: BoundaryKind
) -> None:
    """Then offsets are committed after their records are acknowledged."""
    found = spec(worker, transaction_boundary="poll", **settings)

    assert (delivery, boundary) == (found.delivery, found.boundary)
    assert isinstance(found.offsets, TargetGroup)


def test_a_topic_for_its_offsets_is_refused() -> None:
    """Nobody would read it."""
    given = {**CONNECTOR, "offsets.storage.topic": "own"}

    with pytest.raises(ConfigError, match=r"offsets\.storage\.topic: .*'connect-c'.*Leave"):
        run_spec(validator(EXACTLY_ONCE), given)
    [sentence] = errors(validator(EXACTLY_ONCE).validate(given))["offsets.storage.topic"]
    assert "'connect-c'" in sentence


@pytest.mark.parametrize(
    ("named", "may"),
    [(COPYING, True), ("file_stream", False), ("no.such.Class", False), ("", False)],
)
def test_only_some_configurations_have_to_be_read_for_their_offsets(
    named: str, *, may: bool
) -> None:
    """Those of classes that may name a group."""
    assert may is validator(MODULES).may_have_offset_group(named)


def test_secrets_of_the_connection_are_not_shown() -> None:
    """In no log."""
    own = ConnectorOffsetsGroup.reached_as({"sasl.password": "canary"}, GROUP)

    assert {"sasl.password": "canary"} == dict(own.connection)
    assert "canary" not in repr(own)
