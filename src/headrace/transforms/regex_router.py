"""RegexRouter: topics renamed by a regular expression."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.record import SourceRecord
from headrace.java.regex import java_regex, java_replacement, regex_problem


class RegexRouterConfig(Config):
    regex: str = setting(
        importance="high",
        valid=regex_problem,
        doc="A Java regular expression; topics whose whole name matches are renamed.",
    )
    replacement: str = setting(
        importance="high",
        doc="The replacement of the first match in the name; $1 and ${name} stand for groups.",
    )

    def check(self) -> Iterator[Problem]:
        """Check that the replacement names only groups of the expression."""
        try:
            java_replacement(self.replacement, java_regex(self.regex))
        except ValueError as error:
            message = f"Invalid value {self.replacement} for configuration replacement: {error}"
            yield "replacement", message


class RegexRouter:
    """Renames topics that match as a whole; the others stay as they are."""

    config_class = RegexRouterConfig

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = RegexRouterConfig.parse(config)
        self._regex = java_regex(parsed.regex)
        self._replacement = java_replacement(parsed.replacement, self._regex)

    def apply(self, record: SourceRecord) -> SourceRecord:
        return dataclasses.replace(record, topic=self._renamed(record.topic))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        """The same for all rows, which have one topic."""
        return [dataclasses.replace(batch, topic=self._renamed(batch.topic))]

    def _renamed(self, topic: str) -> str:
        if self._regex.fullmatch(topic) is None:
            return topic
        return self._replacement.first(self._regex, topic)
