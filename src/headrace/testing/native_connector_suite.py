"""The conformance suite of connectors of native sources: subclass it, and define ``connector`` and ``props``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import pytest

from headrace.connect.connector import SourceConnector
from headrace.connect.partition import RECORD_COUNT
from headrace.sources import NativeConnector, PlannedNativeConnector, SourceConfig
from headrace.sources.offset_entry import DONE
from headrace.testing.task_runs import Delivered, LocalRun, Stored

_LOOK_BACK = "ring.buffer.size"
_MOST_RECORDS = 100


class NativeConnectorSuite:
    """Tests a connector with at least two objects that do not change, and at most a hundred records in all.

    Runs it in this process, without Spark and Kafka, and ends it wherever a process may die.
    """

    @pytest.fixture
    def connector(self) -> Callable[[], NativeConnector | PlannedNativeConnector]:
        """Makes the connector under test, such as its class; a subclass replaces this."""
        raise NotImplementedError

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        """Its configuration; a subclass replaces this."""
        raise NotImplementedError

    def test_its_configuration_is_right(
        self, connector: Callable[[], SourceConnector], props: Mapping[str, str]
    ) -> None:
        """The configuration is valid, and settings that the connector fixes cannot be set."""
        made = connector()
        assert not made.problems(props)
        assert issubclass(made.config_class, SourceConfig)
        for key in made.config_class.fixed:
            assert key in [wrong for wrong, _ in made.problems({**props, key: "1"})]

    @pytest.mark.parametrize("look_back", ["0", "1", "2", None])
    def test_nothing_is_sent_again(
        self,
        connector: Callable[[], NativeConnector | PlannedNativeConnector],
        props: Mapping[str, str],
        look_back: str | None,
    ) -> None:
        """Whatever the look-back is, a second run finds nothing, and every object is done."""
        stored: Stored = {}
        props = _with_look_back(connector(), props, look_back)

        assert LocalRun(connector(), props, stored).until_idle()
        assert not LocalRun(connector(), props, stored).until_idle()
        assert all(each.get(DONE) for each in stored.values() if RECORD_COUNT in each)

    @pytest.mark.parametrize("look_back", ["0", "1", None])
    def test_each_record_comes_once_wherever_it_is_killed(
        self,
        connector: Callable[[], NativeConnector | PlannedNativeConnector],
        props: Mapping[str, str],
        look_back: str | None,
    ) -> None:
        """After every record, and again after the next; at least once where reading of an object cannot be resumed."""
        props = _with_look_back(connector(), props, look_back)
        expected = _counted(LocalRun(connector(), props, {}).until_idle())
        assert 0 < expected.total() <= _MOST_RECORDS, "the suite needs one to a hundred records"
        for first in range(1, expected.total()):
            stored: Stored = {}
            found = _counted(LocalRun(connector(), props, stored, stop_after=first).until_idle())
            found += _counted(LocalRun(connector(), props, stored, stop_after=1).until_idle())
            found += _counted(LocalRun(connector(), props, stored).until_idle())
            if connector().source_class.resumes:
                assert found == expected, f"killed after record {first}"
            assert found >= expected, f"killed after record {first}"


def _with_look_back(
    connector: SourceConnector, props: Mapping[str, str], look_back: str | None
) -> Mapping[str, str]:
    assert issubclass(connector.config_class, SourceConfig)
    if look_back is None or _LOOK_BACK in connector.config_class.fixed:
        return props
    return {**props, _LOOK_BACK: look_back}


def _counted(records: Iterable[Delivered]) -> Counter[str]:
    return Counter(f"{each.topic} {each.key!r} {each.value!r}" for each in records)
