"""The suites for authors: right sources pass, also in pages, and each usual mistake is found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.sources import Context, Extractor, NativeSource, OffsetEntry, extractor_named
from headrace.testing.native_connector_suite import NativeConnectorSuite
from headrace.testing.native_suite import NativeSourceSuite
from sources.shelf import (
    KINDS,
    PROPS,
    SHELF,
    Book,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
)
from sources.test_whole_objects import Unordered, UnorderedConnector

OBJECTS = {"a": b"1\n2\n", "b": b"", "c": b"3\n", "d": b"4\n"}


def filled(page: int | None = None) -> Shelf:
    """A shelf for a suite."""
    SHELF.__init__()
    SHELF.objects, SHELF.versions, SHELF.page = dict(OBJECTS), {"a": "v1"}, page
    return SHELF


class FromTheTop(ShelfSource):
    """Ignores where it is to begin."""

    def items(self, start_from: str | None) -> Iterator[Book]:
        """All, each time."""
        return super().items(None)


class SaysSo(FromTheTop):
    """And says that it does."""

    starts_at_keys = False


class TestShelf(NativeSourceSuite):
    """The shelf as it is, in pages, and always listed from its beginning."""

    @pytest.fixture(params=[None, 2, 3, "all"])
    def source(self, request: pytest.FixtureRequest) -> NativeSource[Any]:
        """Its source."""
        filled(page=None if request.param == "all" else request.param)
        SHELF.always_all = request.param == "all"
        return SaysSo() if SHELF.always_all else ShelfSource()

    @pytest.fixture
    def extractor(self) -> Extractor:
        """Lines."""
        return extractor_named("lines")


class TestUnordered(TestShelf):
    """The shelf whose books cannot be gone on with."""

    @pytest.fixture
    def source(self) -> NativeSource[Any]:
        """Its source."""
        filled()
        return Unordered()


class TestShelfConnectors(NativeConnectorSuite):
    """Polled, planned, and with books that cannot be gone on with."""

    @pytest.fixture(params=[*KINDS, UnorderedConnector])
    def connector(self, request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 (a class of connectors)
        """Its class."""
        filled()
        return request.param

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        """Two records a poll."""
        return PROPS


class Backwards(ShelfSource):
    """Lists the last one first."""

    def items(self, start_from: str | None) -> Iterator[Book]:
        """The other way round."""
        return reversed(list(super().items(start_from)))


class Skipping(ShelfSource):
    """Leaves out the one behind the start."""

    def items(self, start_from: str | None) -> Iterator[Book]:
        """Without the second one."""
        listed = super().items(start_from)
        return listed if start_from is None else itertools.islice(listed, 2, None)


class Restless(Book):
    """Has another version each time."""

    numbers = itertools.count()

    def version(self) -> str | None:
        """The next number."""
        return str(next(self.numbers))


class RestlessSource(ShelfSource):
    """Of such."""

    item_class = Restless

    def items(self, start_from: str | None) -> Iterator[Book]:
        """All."""
        return iter(
            [Restless(name) for name in sorted(SHELF.objects) if name >= (start_from or "")]
        )


class Confused(ShelfSource):
    """Finds another object than the one that was asked for."""

    def item(self, native_key: str) -> Book:
        """Always the first one."""
        return Book("a")


class Silent(Unordered):
    """Does not say that its objects cannot be gone on with."""

    resumes = True


class Taking(ShelfSource):
    """Uses a name of the framework's for a property of its own."""

    def entry_from_context(self, context: Context[str]) -> OffsetEntry:
        """With it."""
        return OffsetEntry(self.offset_key(context.native_key), {"version": "mine"})


@pytest.mark.parametrize(
    ("source", "check", "error"),
    [
        (
            Backwards,
            NativeSourceSuite.test_objects_come_in_the_order_of_their_keys_each_time,
            TaskFailedError,
        ),
        (Skipping, NativeSourceSuite.test_a_listing_begins_at_any_key, AssertionError),
        (FromTheTop, NativeSourceSuite.test_a_listing_begins_at_any_key, AssertionError),
        (RestlessSource, NativeSourceSuite.test_a_version_is_that_of_the_content, AssertionError),
        (Confused, NativeSourceSuite.test_an_item_is_found_by_its_key, AssertionError),
        (Silent, NativeSourceSuite.test_an_entry_comes_back_from_the_store, AssertionError),
        (Taking, NativeSourceSuite.test_an_entry_gives_copies, AssertionError),
    ],
)
def test_a_mistake_of_an_author_is_found(
    source: type[ShelfSource], check: Callable[..., None], error: type[Exception]
) -> None:
    """By the test that is about it."""
    filled()

    with pytest.raises(error):
        check(NativeSourceSuite(), source())


def test_a_source_may_list_everything_each_time() -> None:
    """If it says so: the framework passes over what is before the start."""
    filled()

    NativeSourceSuite().test_a_listing_begins_at_any_key(SaysSo())


class LosingTask(ShelfTask):
    """Its source gives entries that have forgotten the count."""

    def source(self, config: object) -> ShelfSource:
        """Such a source."""

        class Losing(ShelfSource):
            """Of such."""

            def entry_from_data(self, data: Mapping[str, object]) -> OffsetEntry | None:
                """Without the count."""
                return OffsetEntry(self.offset_key(str(data["key"])))

        return Losing()


class LosingConnector(ShelfConnector):
    """The shelf, half forgotten."""

    task_class = LosingTask


class SettingConfig(ShelfConnector.config_class):
    """Lets the user set what it fixes."""

    fixed = {"ring.buffer.size": "1"}  # noqa: RUF012

    @classmethod
    def problems(cls, props: Mapping[str, str]) -> tuple[tuple[str, str], ...]:  # noqa: ARG003
        """None."""
        return ()


class SettingTask(ShelfTask):
    """Reads with it."""

    config_class = SettingConfig


class SettingConnector(ShelfConnector):
    """Its own rules forget what it fixes."""

    config_class = SettingConfig
    task_class = SettingTask


def test_a_connector_that_sends_records_twice_is_found() -> None:
    """Wherever it loses its place."""
    filled()

    with pytest.raises(AssertionError, match="killed after record 1"):
        NativeConnectorSuite().test_each_record_comes_once_wherever_it_is_killed(
            LosingConnector, PROPS, None
        )


def test_a_connector_that_lets_a_fixed_setting_be_set_is_found() -> None:
    """Its user would believe in it."""
    with pytest.raises(AssertionError):
        NativeConnectorSuite().test_its_configuration_is_right(SettingConnector, PROPS)


def test_items_of_another_class_are_found() -> None:
    """What the source says of its items before anything runs must be true."""

    class Other(ShelfSource):
        """Says something else."""

        item_class = Restless

    filled()
    with pytest.raises(AssertionError):
        NativeSourceSuite().test_a_context_tells_its_key(Other())
