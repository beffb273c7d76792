"""The connector of a native source whose objects can be listed on the driver and opened by their keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.connect.connector import ExactlyOnceSupport, Plan, PlannedConnector, PlanRequest
from headrace.connect.errors import ConfigError, RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.sources.connector import check_native
from headrace.sources.item import UNKNOWN_LENGTH, NativeItem, NotAStreamError
from headrace.sources.item_reader import DONE
from headrace.sources.keys import KeyCodec
from headrace.sources.sharing import Piece, shared
from headrace.sources.source import NativeSource
from headrace.sources.task import KEY, NativeSourceTask

# What an object counts for whose length nobody knows.
_USUAL_BYTES = 1024 * 1024


class PlannedNativeConnector(PlannedConnector):
    """Lists the source once for all tasks, and shares out by size what is left of it.

    An author extends it with ``config_class``, ``task_class`` and ``source_class``; the source overrides
    ``key_codec`` and ``item`` besides what every source does. No job runs while there is nothing new.
    """

    source_class: type[NativeSource[Any]]
    """What the task's ``source`` returns."""

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`.

        Raises :class:`~headrace.connect.errors.ConfigError` for an extractor that cannot read the items,
        and for a source that cannot be planned.
        """
        check_native(self.source_class, self.task_class, props)
        self._task = self.task_class()
        assert isinstance(self._task, NativeSourceTask)
        self._settings = self._task.configure(props)
        self._source = self._task.source(self._settings)
        self._codec = _codec_of(self._source)

    def plan(self, request: PlanRequest) -> Plan:
        """See :class:`~headrace.connect.connector.PlannedConnector`."""
        known = request.offsets.known()
        pieces = list(itertools.islice(self._new(known), self._settings.max_objects or None))
        return Plan(
            shares=shared(pieces, request.slots), total_bytes=sum(each.weight for each in pieces)
        )

    def stop(self) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        source = getattr(self, "_source", None)
        if source is not None:
            source.close()
            assert isinstance(self._task, NativeSourceTask)
            self._task.close_resources()

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: each record's offset says how many records of its object were sent."""
        return ExactlyOnceSupport.SUPPORTED

    def _new(self, known: Mapping[SourcePartition, SourceOffset]) -> Iterator[Piece]:
        """What is not done yet, in the order of keys."""
        first = self._settings.native_start_key
        start = None if first is None else self._codec.decode(first)
        try:
            for item in self._source.items(start):
                key = item.context().native_key
                partition = self._source.offset_key(key).partition
                offset = known.get(partition)
                if offset is None or not offset.get(DONE):
                    details = {KEY: self._codec.encode(key)}
                    split = Split(partition=partition, offset=offset, details=details)
                    yield Piece(split=split, weight=_bytes_of(item))
        except OSError as error:
            raise RetriableError(f"{self._source.name} cannot be listed now: {error}") from error


def _codec_of(source: NativeSource[Any]) -> KeyCodec[Any]:
    codec = source.key_codec()
    if codec is None or type(source).item is NativeSource.item:
        told = f"{source.name} cannot be planned: it must override key_codec and item"
        raise ConfigError([("connector.class", f"{told}, or be run by a NativeConnector.")])
    return codec


def _bytes_of(item: NativeItem[Any]) -> int:
    try:
        length = item.estimated_length()
    except NotAStreamError:
        return _USUAL_BYTES
    return _USUAL_BYTES if length == UNKNOWN_LENGTH else length
