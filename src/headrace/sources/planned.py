"""The connector of a native source whose objects can be listed on the driver and opened by their keys."""

from __future__ import annotations

import io
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headrace.connect.config import Problem
from headrace.connect.connector import (
    ExactlyOnceSupport,
    Explained,
    Plan,
    PlannedConnector,
    PlanRequest,
)
from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.sources.acknowledging import Acknowledging
from headrace.sources.author_checks import length_of, made_source, version_of
from headrace.sources.change_policy import ChangePolicy, is_changed
from headrace.sources.config import start_key
from headrace.sources.connector import (
    check_native,
    lacking_classes,
    native_problems,
    native_schemaless,
    native_support,
)
from headrace.sources.item import NativeItem, NotAStreamError
from headrace.sources.keys import KeyCodec
from headrace.sources.listing import Lister
from headrace.sources.offset_entry import DONE, QUARANTINED, VERSION, is_closed
from headrace.sources.quarantine import quarantine_told, sent_nothing
from headrace.sources.sharing import Piece, shared
from headrace.sources.source import NativeSource
from headrace.sources.task import KEY, NativeSourceTask
from headrace.sources.told_once import ToldOnce

_log = logging.getLogger(__name__)

# What an object counts for whose length no one knows.
_USUAL_BYTES = 1024 * 1024


class PlannedNativeConnector(PlannedConnector):
    """Lists the source once for all tasks, and shares out by size what is left of it.

    An author extends it with ``config_class``, ``task_class`` and ``source_class``; the source overrides
    ``key_codec`` and ``item`` besides what every source does. No job runs while there is nothing new.
    """

    source_class: type[NativeSource[Any]]
    """What the task's ``source`` returns."""

    def problems(self, props: Mapping[str, str]) -> Sequence[Problem]:
        """See :class:`~headrace.connect.connector.SourceConnector`.

        An extractor that cannot read the items, and a source that cannot be planned, are problems.
        """
        return lacking_classes(type(self)) or (
            *native_problems(type(self), self.source_class, props),
            *_planning_problems(self.source_class),
        )

    def schemaless(self, props: Mapping[str, str]) -> str | None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        return native_schemaless(self.task_class, props)

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`.

        Raises :class:`~headrace.connect.errors.ConfigError` for what :meth:`problems` tells.
        """
        check_native(self, self.source_class, props)
        self._task = self.task_class()
        assert isinstance(self._task, NativeSourceTask)
        self._settings = self._task.configure(props)
        self._source = made_source(self._task, self._settings)
        self._codec = _codec_of(self._source)
        first = self._settings.native_start_key
        self._first = None if first is None else start_key(first, self._codec, self._source.name)
        self._overwritten = ChangePolicy(self._settings.changed)
        self._lister = Lister(self._source)
        self._acknowledging = Acknowledging(self._source)
        self._acknowledged = set[SourcePartition]()
        self._told = ToldOnce(_log)

    def plan(self, request: PlanRequest) -> Plan:
        """See :class:`~headrace.connect.connector.PlannedConnector`."""
        plan = self._planned(request, self._told.tell)
        for key in self._acknowledging.tell():
            self._acknowledged.add(self._source.offset_key(key).partition)
        return plan

    def explain(self, request: PlanRequest) -> Iterator[Explained]:
        """See :class:`~headrace.connect.connector.PlannedConnector`. Acknowledges nothing."""
        aside = list[Explained]()
        plan = self._planned(
            request, lambda name, told: aside.append(Explained(name=name, reason=told))
        )
        for slot, share in enumerate(plan.shares):
            for split in share:
                yield Explained(name=str(split.details[KEY]), slots=(slot,))
        yield from aside

    def stop(self) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        source = getattr(self, "_source", None)
        if source is not None:
            source.close()
            assert isinstance(self._task, NativeSourceTask)
            self._task.close_resources()

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """See :func:`~headrace.sources.connector.native_support`."""
        return native_support(self.source_class, props)

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """They do: each object is a transaction then."""
        return True

    def _planned(self, request: PlanRequest, tell: Callable[[str, str], None]) -> Plan:
        """The plan; *tell* is called with each object in quarantine that the listing shows."""
        limit = self._settings.max_objects
        new = self._new(request.offsets.known(), tell)
        pieces = list(itertools.islice(new, limit or None))
        return Plan(
            shares=shared(pieces, request.slots),
            total_bytes=sum(each.weight for each in pieces),
            objects=[str(each.split.details[KEY]) for each in pieces],
            has_more=bool(limit) and len(pieces) == limit and next(new, None) is not None,
        )

    def _new(
        self, known: Mapping[SourcePartition, SourceOffset], tell: Callable[[str, str], None]
    ) -> Iterator[Piece]:
        """What is not done yet, in the order of keys."""
        try:
            for item in self._lister.listed(self._first):
                key = item.context().native_key
                partition = self._source.offset_key(key).partition
                left, offset = self._left(item, partition, known.get(partition))
                if left:
                    details = {KEY: self._codec.encode(key)}
                    split = Split(partition=partition, offset=offset, details=details)
                    yield Piece(split=split, weight=_bytes_of(item))
                elif offset is not None and QUARANTINED in offset:
                    tell(str(key), quarantine_told(offset[QUARANTINED]))
        except io.UnsupportedOperation as error:
            raise TaskFailedError(f"{self._source.name} cannot be listed: {error}.") from error
        except OSError as error:
            raise RetriableError(f"{self._source.name} cannot be listed now: {error}") from error

    def _left(
        self, item: NativeItem[Any], partition: SourcePartition, offset: SourceOffset | None
    ) -> tuple[bool, SourceOffset | None]:
        """Whether anything of *item* is to be read, and behind which offset.

        Raises :class:`~headrace.connect.errors.TaskFailedError` for an overwritten one, if that is to fail.
        """
        key, now, before = item.context().native_key, version_of(item), offset or {}
        sent = before.get(VERSION)
        if is_changed(sent, now):
            again = sent_nothing(before)
            return again or self._overwritten.is_reread(key, sent=sent, now=now), None
        if before.get(DONE) and partition not in self._acknowledged:
            self._acknowledging.note(key, sent)
        return not is_closed(before), offset


def _planning_problems(source: type[NativeSource[Any]]) -> Iterator[Problem]:
    if NativeSource.item is source.item or NativeSource.key_codec is source.key_codec:
        yield "connector.class", _cannot_plan(source)


def _cannot_plan(source: type[NativeSource[Any]]) -> str:
    told = f"{source.name} cannot be planned: it must override key_codec and item"
    return f"{told}, or be run by a NativeConnector."


def _codec_of(source: NativeSource[Any]) -> KeyCodec[Any]:
    codec = source.key_codec()
    if codec is None:
        raise ConfigError([("connector.class", _cannot_plan(type(source)))])
    return codec


def _bytes_of(item: NativeItem[Any]) -> int:
    try:
        length = length_of(item)
    except NotAStreamError:
        return _USUAL_BYTES
    return _USUAL_BYTES if length is None else length
