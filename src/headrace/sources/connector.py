"""The connector of a native source that is polled."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headrace.connect.config import Config, Problem
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import ConfigError
from headrace.connect.task import SourceTask
from headrace.sources.config import START_KEY, SourceConfig
from headrace.sources.item import NativeItem
from headrace.sources.marks import TASK_ID, TASKS, marks_for
from headrace.sources.offset_entry import QUARANTINED
from headrace.sources.quarantine import quarantine_told
from headrace.sources.source import NativeSource
from headrace.sources.task import NativeSourceTask
from headrace.sources.told_once import ToldOnce

_log = logging.getLogger(__name__)
_SCHEMALESS: Mapping[str, str] = {"jsonl": "JSON lines", "csv": "CSV rows"}
_BOUNDARY, _CONNECTOR = "transaction.boundary", "connector"


class NativeConnector(SourceConnector):
    """Runs a :class:`~headrace.sources.task.NativeSourceTask` in as many tasks as are asked for.

    An author extends it with ``config_class``, ``task_class`` and ``source_class``, and nothing else.
    """

    source_class: ClassVar[type[NativeSource[Any]]]
    """What the task's ``source`` returns."""

    def problems(self, props: Mapping[str, str]) -> Sequence[Problem]:
        """See :class:`~headrace.connect.connector.SourceConnector`; an extractor that cannot read the items."""
        lacking = lacking_classes(type(self))
        return lacking or native_problems(type(self), self.source_class, props)

    def schemaless(self, props: Mapping[str, str]) -> str | None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        return native_schemaless(self.task_class, props)

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`.

        Raises :class:`~headrace.connect.errors.ConfigError` for what :meth:`problems` tells.
        """
        self._props = dict(props)
        self._told = ToldOnce(_log)
        check_native(self, self.source_class, props)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One for each task; with them where the first listing begins. Tells what is in quarantine."""
        known = self.context.offsets.known()
        for partition, offset in known.items():
            if QUARANTINED in offset:
                named = ", ".join(f"{name} {value}" for name, value in partition.items())
                self._told.tell(named, quarantine_told(offset[QUARANTINED]))
        by_key = self.source_class.offset_key is NativeSource.offset_key
        marks = marks_for(known, tasks=max_tasks, by_key=by_key)
        shared = {**self._props, TASKS: str(max_tasks), **marks}
        return [{**shared, TASK_ID: str(task)} for task in range(max_tasks)]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """See :func:`native_support`."""
        return native_support(self.source_class, props)

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """They do: each object is a transaction then."""
        return True


def lacking_classes(connector: type[SourceConnector]) -> Sequence[Problem]:
    """What an author has left out of *connector* and its source; for connectors of native sources."""
    needed = [(connector, name) for name in ("config_class", "task_class", "source_class")]
    source = getattr(connector, "source_class", None)
    if source is not None:
        needed += [(source, name) for name in ("name", "item_class")]
    return [
        ("connector.class", f"{each.__name__} lacks {name}: set it in the class {each.__name__}.")
        for each, name in needed
        if not hasattr(each, name)
    ]


def native_support(source: type[NativeSource[Any]], props: Mapping[str, str]) -> ExactlyOnceSupport:
    """Supported where each record's offset says how many records of its object were sent.

    Where objects cannot be gone on with, only if each of them is a transaction of its own.
    """
    whole = props.get(_BOUNDARY, "").strip().lower() == _CONNECTOR
    supported = source.resumes or whole
    return ExactlyOnceSupport.SUPPORTED if supported else ExactlyOnceSupport.UNSUPPORTED


def native_schemaless(task_class: type[SourceTask], props: Mapping[str, str]) -> str | None:
    """What ``extractor.class`` names, where it makes values without schema and no one changes them."""
    assert issubclass(task_class, NativeSourceTask)
    base = NativeSourceTask
    own = (
        task_class.extractor is not base.extractor
        or task_class.last_evolution is not base.last_evolution
        or task_class.last_evolution_of_batch is not base.last_evolution_of_batch
    )
    if own:
        return None
    return _SCHEMALESS.get(task_class.config_class.parse(props).extractor.lower())


def check_native(
    connector: SourceConnector, source: type[NativeSource[Any]], props: Mapping[str, str]
) -> None:
    """Refuse *props* that are wrong, and log what they cost where they are not exactly-once."""
    problems = connector.problems(props)
    if problems:
        raise ConfigError(problems)
    if connector.exactly_once_support(props) is ExactlyOnceSupport.UNSUPPORTED:
        _log.warning(
            "Connector %s: Objects of %s cannot be gone on with in their middle. One that is interrupted is "
            "read again from its beginning, and its records come twice. For exactly-once, set "
            "transaction.boundary=connector on a worker with exactly-once: each object is a transaction then.",
            props.get("name"),
            source.name,
        )


def native_problems(
    connector: type[SourceConnector], source: type[NativeSource[Any]], props: Mapping[str, str]
) -> Sequence[Problem]:
    """What is wrong with *props*, an extractor of streams where items are none included.

    Also classes of *connector* that do not fit together. For connectors of native sources.
    """
    task_class = connector.task_class
    assert issubclass(task_class, NativeSourceTask)
    if not _reads_by(connector.config_class, task_class.config_class):
        return [("connector.class", _differing(connector, task_class))]
    problems = list(connector.config_class.problems(props))
    if START_KEY in props and source.key_codec is NativeSource.key_codec:
        problems.append((START_KEY, f"The keys of {source.name} have no text form. Remove it."))
    if not problems and source.item_class.open is NativeItem.open:
        task = task_class()
        try:
            needs_stream = task.extractor(task.configure(props)).needs_stream
        finally:
            task.close_resources()
        if needs_stream:
            told = f"The items of {source.name} are no streams of bytes"
            problems.append(("extractor.class", f"{told}; choose an extractor that needs none."))
    return problems


def _reads_by(connectors: type[Config], tasks: type[SourceConfig]) -> bool:
    """Whether what a connector promises of its settings holds in tasks that read them by *tasks*."""
    return issubclass(connectors, tasks) and connectors.fixed == tasks.fixed


def _differing(connector: type[SourceConnector], task: type[NativeSourceTask]) -> str:
    return (
        f"{task.__name__}.config_class is {task.config_class.__name__}, and {connector.__name__}.config_class "
        f"is {connector.config_class.__name__}. Both must be the same class, or the task's a parent of the "
        "connector's with the same fixed settings."
    )
