"""The connector of a native source that is polled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import ConfigError
from headrace.connect.task import SourceTask
from headrace.sources.item import NativeItem
from headrace.sources.marks import TASK_ID, TASKS, marks_for
from headrace.sources.source import NativeSource
from headrace.sources.task import NativeSourceTask


class NativeConnector(SourceConnector):
    """Runs a :class:`~headrace.sources.task.NativeSourceTask` in as many tasks as are asked for.

    An author extends it with ``config_class``, ``task_class`` and ``source_class``, and nothing else.
    """

    source_class: ClassVar[type[NativeSource[Any]]]
    """What the task's ``source`` returns."""

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`.

        Raises :class:`~headrace.connect.errors.ConfigError` for an extractor that cannot read the items.
        """
        self._props = dict(props)
        check_native(self.source_class, self.task_class, props)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One for each task; with them where the first listing begins."""
        marks = marks_for(self.context.offsets.known(), tasks=max_tasks)
        shared = {**self._props, TASKS: str(max_tasks), **marks}
        return [{**shared, TASK_ID: str(task)} for task in range(max_tasks)]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: each record's offset says how many records of its object were sent."""
        return ExactlyOnceSupport.SUPPORTED


def check_native(
    source: type[NativeSource[Any]], task_class: type[SourceTask], props: Mapping[str, str]
) -> None:
    """Refuse an extractor of streams where items are none; for connectors of native sources."""
    task = task_class()
    assert isinstance(task, NativeSourceTask)
    if source.item_class.open is not NativeItem.open:
        return
    if task.extractor(task.configure(props)).needs_stream:
        told = f"The items of {source.name} are no streams of bytes"
        raise ConfigError([("extractor.class", f"{told}; choose an extractor that needs none.")])
