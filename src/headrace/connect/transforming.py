"""The contract of single-message transformations and predicates, which change records between connector and converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.record import SourceRecord


class Transform(Protocol):
    """Changes records one by one, or drops them; what Kafka Connect calls a transformation.

    Made and configured once per slot and micro-batch, then called on the slot's thread. Keeps no state
    between records: they may come again after a failure, and go to different tasks. A class may have the
    attribute ``config_class``, a :class:`~headrace.connect.config.Config`: its settings are then shown and
    checked before a connector starts.
    """

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the transformation's own settings, without their ``transforms.<alias>.``.

        Raises :class:`~headrace.connect.errors.ConfigError` for a setting that is wrong.
        """
        ...

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """The changed *record*, or ``None`` to drop it; must change neither its argument nor the values in it.

        Structs are dictionaries of all their fields, maps are dictionaries, and a JSON document without
        schema is the value that it represents. The source partition and offset stay what they are, whatever is
        returned. Raises :class:`~headrace.connect.errors.RecordError` for a record that it cannot change
        (any other exception counts as one, too, as in Kafka Connect), and
        :class:`~headrace.connect.errors.RetriableError` to be called again (``errors.retry.timeout``).
        """
        ...


@runtime_checkable
class ColumnarTransform(Transform, Protocol):
    """A transformation that can change many records at once."""

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """What ``apply`` makes of each row of *batch*, in batches whose rows together are those of *batch*, in order.

        An empty sequence drops all rows. ``None`` when it does not support such a batch: its rows then go
        through ``apply``, as they do after a :class:`~headrace.connect.errors.RecordError`. Must not change
        its argument.
        """
        ...


class Predicate(Protocol):
    """Decides to which records a transformation applies (KIP-585). Configured and called like a transformation."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the predicate's own settings, without their ``predicates.<alias>.``."""
        ...

    def test(self, record: SourceRecord) -> bool:
        """Whether the predicate is true for *record*."""
        ...


@runtime_checkable
class ColumnarPredicate(Predicate, Protocol):
    """A predicate that can test many records at once."""

    def test_batch(self, batch: SourceBatch) -> bool | pa.BooleanArray | None:
        """For which rows of *batch* it is true: for all or none, or one value per row without nulls.

        ``None`` when it does not support such a batch; its rows then go through ``test``.
        """
        ...
