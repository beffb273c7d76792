"""Settings of native sources that a connector fixes or narrows, and extractors that cannot read its items."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest

from headrace.connect.config import setting
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError
from headrace.plugins import checked_worker, validated_connector
from headrace.sources import (
    Context,
    Extractor,
    NativeItem,
    NativeSource,
    NativeSourceTask,
    NumberKeys,
    SourceConfig,
    StreamExtractor,
    ValueExtractor,
)
from headrace.testing.task_runs import LocalRun
from sources.shelf import (
    PROPS,
    LouderConnector,
    PlannedShelfConnector,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
    run,
)


class FixedConfig(SourceConfig):
    """Takes the extractor, the distribution and the look-back from the user, and narrows the queue."""

    fixed: ClassVar = {
        "extractor.class": "lines",
        "distribution.type": "ALL",
        "ring.buffer.size": "0",
        "extractor.buffer": None,
    }
    max_poll_records: int = setting(default=3, at_most=10, doc="At most ten.")


class FixedTask(ShelfTask):
    """Reads with it."""

    config_class = FixedConfig


class FixedConnector(ShelfConnector):
    """The shelf, with fixed settings."""

    config_class = FixedConfig
    task_class = FixedTask


def test_a_fixed_setting_has_its_value():
    """And the user's settings are the rest."""
    config = FixedConfig.parse({"topic": "t"})

    assert ("lines", "ALL", 0, 4096) == (
        config.extractor,
        config.distribution_type,
        config.ring_buffer_size,
        config.extractor_buffer,
    )
    assert 3 == config.max_poll_records
    assert not FixedConfig.fixed.keys() & {each.name for each in FixedConfig.settings()}
    assert FixedConfig.fixed.keys() <= {each.name for each in SourceConfig.settings()}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("extractor.class", "csv", "It is always 'lines' with this connector. Remove it."),
        ("extractor.class", "lines", "It is always 'lines' with this connector. Remove it."),
        ("distribution.type", "nonsense", "It is always 'ALL' with this connector. Remove it."),
        ("ring.buffer.size", "7", "It is always '0' with this connector. Remove it."),
        ("extractor.buffer", "7", "It has no effect with this connector. Remove it."),
        (
            "max.poll.records",
            "11",
            "Invalid value 11 for configuration max.poll.records: Value must be no more than 10",
        ),
    ],
)
def test_a_fixed_or_narrowed_setting_is_refused(key: str, value: str, sentence: str):
    """With a sentence that says what to do."""
    assert [(key, sentence)] == list(FixedConnector().problems({"topic": "t", key: value}))


def test_a_connector_with_fixed_settings_runs(shelf: Shelf):
    """By what they are fixed to."""
    shelf.objects = {"a": b"1\n2\n"}

    made = LocalRun(FixedConnector(), {"topic": "t"}, {})

    assert ["1", "2"] == [each.value for each in made.until_idle()]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"no.such.key": "1"},
            "Mistaken.fixed names no.such.key. It must name settings of its own.",
        ),
        (
            {"ring.buffer.size": "many"},
            (
                "Mistaken.fixed names ring.buffer.size. It must name values that can be: "
                "Invalid value many for configuration ring.buffer.size: Not a number of type INT"
            ),
        ),
    ],
)
def test_a_mistake_of_the_author_is_told_at_once(keys: dict[str, str], message: str):
    """As a problem of the class, not of what the user has set."""

    class Mistaken(SourceConfig):
        """Fixes what there is not."""

        fixed: ClassVar = keys

    assert (("connector.class", message),) == Mistaken.problems({})


class NarrowTask(ShelfTask):
    """Reads by settings of its own, which extend the connector's."""

    config_class = FixedConfig


class NarrowConnector(ShelfConnector):
    """Does not know what its task fixes."""

    task_class = NarrowTask


class WideConnector(ShelfConnector):
    """Its task does not know what it fixes."""

    config_class = FixedConfig


class PlannedNarrowConnector(PlannedShelfConnector):
    """The same, listed on the driver."""

    task_class = NarrowTask


@pytest.mark.parametrize(
    ("connector", "told"),
    [
        (
            NarrowConnector,
            "NarrowTask.config_class is FixedConfig, and NarrowConnector.config_class is SourceConfig.",
        ),
        (
            PlannedNarrowConnector,
            "NarrowTask.config_class is FixedConfig, and PlannedNarrowConnector.config_class is SourceConfig.",
        ),
        (
            WideConnector,
            "ShelfTask.config_class is SourceConfig, and WideConnector.config_class is FixedConfig.",
        ),
    ],
)
def test_a_connector_and_its_task_have_the_same_settings(
    connector: type[SourceConnector], told: str
):
    """Otherwise what the connector fixes and knows would not hold."""
    ((key, sentence),) = connector().problems({"topic": "t"})

    assert "connector.class" == key
    assert f"{told} Both must be the same class" in sentence


def test_a_task_may_read_by_less():
    """By a parent of the connector's settings, where nothing else is fixed; its rules hold."""

    class More(SourceConfig):
        """One setting more, for the connector alone."""

        colour: str = setting(doc="Of the books.")

    class Connector(ShelfConnector):
        """Runs the usual task."""

        config_class = More

    assert [] == list(Connector().problems({"topic": "t", "colour": "red"}))
    assert ["colour"] == [key for key, _ in Connector().problems({"topic": "t"})]


class Thing(NativeItem[str]):
    """No stream."""

    def context(self) -> Context[str]:
        """Always the same."""
        return Context(native_key="thing")


class ThingSource(ShelfSource):
    """Items that are no streams."""

    item_class = Thing

    def items(self, start_from: str | None) -> Iterator[Any]:
        """One."""
        return iter([Thing()])

    def item(self, native_key: str) -> Thing:  # type: ignore[override]
        """The one."""
        return Thing()


class Letters(ValueExtractor):
    """Two records of each item."""

    def values(self, item: NativeItem[Any]) -> Iterable[object]:
        """The same each time."""
        return ["x", "y"]


class ThingTask(ShelfTask):
    """Reads them with an extractor of streams."""

    closed = 0

    def source(self, config: SourceConfig) -> ThingSource:
        """The things."""
        return ThingSource()

    def close_resources(self) -> None:
        """Counted."""
        type(self).closed += 1


class LettersTask(ThingTask):
    """Reads them with one that needs none."""

    def extractor(self, config: SourceConfig) -> Extractor:
        """The letters."""
        return Letters()


class ThingConnector(ShelfConnector):
    """Things."""

    task_class = ThingTask
    source_class = ThingSource


class PlannedThingConnector(PlannedShelfConnector):
    """The same, planned."""

    task_class = ThingTask
    source_class = ThingSource


class LettersConnector(ShelfConnector):
    """Things, with the right extractor."""

    task_class = LettersTask
    source_class = ThingSource


class PlannedLettersConnector(PlannedShelfConnector):
    """The same, planned."""

    task_class = LettersTask
    source_class = ThingSource


@pytest.mark.parametrize("connector", [ThingConnector(), PlannedThingConnector()])
def test_an_extractor_of_streams_on_items_that_are_none_is_a_configuration_error(
    connector: SourceConnector,
):
    """Found before anything runs; what looking took is given back."""
    before = ThingTask.closed
    problems = connector.problems(PROPS)

    assert ["extractor.class"] == [key for key, _ in problems]
    assert "The items of shelf are no streams of bytes" in problems[0][1]
    assert before + 1 == ThingTask.closed
    with pytest.raises(ConfigError, match="no streams of bytes"):
        connector.start(PROPS)


@pytest.mark.parametrize("kind", [LettersConnector, PlannedLettersConnector])
def test_an_extractor_for_items_that_are_no_stream_reads_them(kind: type[SourceConnector]):
    """Once, going on behind each record."""
    stored: dict[Any, Any] = {}

    assert ["x"] == run(stored, 1, kind=kind)
    assert ["y"] == run(stored, kind=kind)
    assert [] == run(stored, kind=kind)


class Nameless(NativeSource[str]):
    """Its keys have no text."""

    name = "nameless"
    item_class = Thing

    def items(self, start_from: str | None) -> Iterator[Any]:
        """None."""
        return iter([])


class NamelessConnector(LettersConnector):
    """Polled."""

    source_class = Nameless


class PlannedNamelessConnector(PlannedLettersConnector):
    """Planned, which it cannot be."""

    source_class = Nameless


def test_what_needs_keys_with_a_text_is_refused_without():
    """A start key, and planning."""
    found = NamelessConnector().problems({**PROPS, "native.start.key": "b"})
    planned = PlannedNamelessConnector().problems(PROPS)

    assert [("native.start.key", "The keys of nameless have no text form. Remove it.")] == list(
        found
    )
    assert ["connector.class"] == [key for key, _ in planned]
    assert "nameless cannot be planned: it must override key_codec and item" in planned[0][1]


class NumberedItem(NativeItem[int]):
    """One that is opened."""

    def open(self) -> io.BytesIO:
        """Without content."""
        return io.BytesIO()


class Numbered(NativeSource[int]):
    """Nothing, whose keys would be numbers."""

    name = "numbered"
    item_class = NumberedItem

    def items(self, start_from: int | None) -> Iterator[NativeItem[int]]:
        """None."""
        return iter([])

    def item(self, native_key: int) -> NativeItem[int]:
        """None."""
        raise KeyError(native_key)

    def key_codec(self) -> NumberKeys:
        """Of numbers."""
        return NumberKeys()


class NumberedTask(NativeSourceTask):
    """Reads it."""

    def source(self, config: SourceConfig) -> Numbered:
        """That one."""
        return Numbered()


class NumberedConnector(ShelfConnector):
    """Polled."""

    source_class = Numbered
    task_class = NumberedTask


class PlannedNumberedConnector(PlannedShelfConnector):
    """Planned."""

    source_class = Numbered
    task_class = NumberedTask


@pytest.mark.parametrize("kind", [NumberedConnector, PlannedNumberedConnector])
def test_a_start_key_that_is_none_of_the_source_is_told(kind: type[SourceConnector]):
    """With its setting, before anything is read."""
    with pytest.raises(ConfigError) as caught:
        run({}, kind=kind, native_start_key="abc")

    ((key, told),) = caught.value.problems
    assert "native.start.key" == key
    assert told.startswith("'abc' is no key of numbered: ")
    assert "remove it" in told


def test_a_worker_refuses_what_a_connector_tells():
    """Before it is started."""
    worker = checked_worker(
        {
            "key.converter": "string",
            "value.converter": "string",
            "plugin.modules": ThingConnector.__module__,
        }
    )
    path = f"{ThingConnector.__module__}:ThingConnector"

    with pytest.raises(ConfigError, match="no streams of bytes"):
        validated_connector({**PROPS, "name": "c", "connector.class": path}, worker)


def test_extractors_of_streams_say_so():
    """What the check looks at."""
    assert StreamExtractor.needs_stream
    assert not Letters.needs_stream


AVRO = {"value.converter": "avro", "value.converter.schema.registry.url": "http://localhost:1"}


@pytest.mark.parametrize("kind", [ShelfConnector, PlannedShelfConnector])
@pytest.mark.parametrize(("extractor", "expected"), [("JSONL", "JSON lines"), ("lines", None)])
def test_values_without_schema_are_told(
    kind: type[ShelfConnector], extractor: str, expected: str | None
):
    """So that a converter that needs one is refused before anything starts."""
    props = {**PROPS, **AVRO, "extractor.class": extractor}

    assert expected == kind().schemaless(props)


def test_what_an_evolution_makes_of_them_is_not_known_before():
    """It may give them a schema."""
    assert LouderConnector().schemaless({**PROPS, "extractor.class": "jsonl"}) is None
