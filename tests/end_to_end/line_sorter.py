"""An author's transformation, for slots: sorts lines by their number."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from headrace.connect import Config, RecordError, SourceRecord, setting

BAD = "It is a bad line."


def is_bad(line: int) -> bool:
    """Which lines are refused."""
    return line % 7 == 3


def is_debug(line: int) -> bool:
    """Which of the others go to another topic."""
    return line % 5 == 4


class LineSorterConfig(Config):
    """Settings of :class:`LineSorter`."""

    debug_topic: str = setting(doc="Where debug lines go.")


class LineSorter:
    """Refuses bad lines, and sends debug lines to a topic of their own."""

    config_class = LineSorterConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Take ``debug.topic``."""
        self._topic = LineSorterConfig.parse(config).debug_topic

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record*, sorted."""
        assert isinstance(record.value, dict)
        line = record.value["line"]
        if is_bad(line):
            raise RecordError(BAD)
        return dataclasses.replace(record, topic=self._topic) if is_debug(line) else record
