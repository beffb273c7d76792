"""An author's connector as Kafka Connect knows them: a polled task that sends numbers; for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.connect import (
    Config,
    ExactlyOnceSupport,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
    setting,
)

NUMBERS = SourcePartition(source="numbers")
_AT_ONCE = 50


class CountedTask(SourceTask):
    """Sends the numbers below ``numbers``, from the first one that is not in Kafka."""

    def start(self, config: Mapping[str, str]) -> None:
        """Go on where the offset is."""
        self.topic, self.end = config["topic"], int(config["numbers"])
        self.next = (self.context.offsets.offset(NUMBERS) or {"next": 0})["next"]

    def poll(self) -> list[SourceRecord] | None:
        """The next ones, each with the offset behind it."""
        numbers = range(self.next, min(self.next + _AT_ONCE, self.end))
        self.next = numbers.stop
        return [
            SourceRecord(
                topic=self.topic,
                value=str(number),
                source_partition=NUMBERS,
                source_offset={"next": number + 1},
            )
            for number in numbers
        ] or None


class CountedConfig(Config):
    """Where to, and how many."""

    topic: str = setting(doc="The topic.")
    numbers: int = setting(doc="How many numbers there are.")


class CountedConnector(SourceConnector):
    """One task."""

    config_class = CountedConfig
    task_class = CountedTask

    def start(self, props: Mapping[str, str]) -> None:
        """Take the configuration."""
        self.props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """There is one source partition."""
        return [self.props]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: it goes on at any number."""
        return ExactlyOnceSupport.SUPPORTED
