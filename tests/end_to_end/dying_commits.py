"""A polled connector whose task ends its own process at an exact moment of a commit, which a test has chosen."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from end_to_end.commit_model import (
    MAIN,
    OTHER,
    ROWS,
    SIDE,
    VARIED,
    Ends,
    Moment,
    Position,
    Stored,
    Update,
    ends_transaction,
    main_values,
    moved,
    side_value,
)
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.partition import OffsetReader, SourcePartition
from headrace.connect.task import Offsets, Polled, SourceTask
from headrace.kafka.client_sender import ClientSender
from headrace.kafka.sender import Sender
from headrace.kafka.wire_sender import WireSender

GROUPS, ENDS, UPDATE, MOMENT, MARKS = (
    "test.groups",
    "test.ends",
    "test.update",
    "test.moment",
    "test.marks",
)
"""Settings: how many groups there are, and :class:`Ends`, :class:`Update` and :class:`Moment` of the cell; and the
folder with a file for each death, which holds the offsets that the task after it has begun with."""

# Longer than the shortest interval between commits, so that it is over at each poll.
_POLL_SECONDS = 0.005
_PARTITIONS = {each: SourcePartition(source=each) for each in (MAIN, SIDE, OTHER)}


class Death:
    """Ends the process when a sender of this process comes to *moment*, once it is due."""

    def __init__(self) -> None:
        self._moment: Moment | None = None
        self._mark = Path()
        self._has_offsets = self._is_settling = False

    def is_due(self, moment: Moment | None, mark: Path) -> None:
        """It is to come in the commit that follows; never with ``None``."""
        self._moment, self._mark, self._has_offsets = moment, mark, False

    def come(self, moment: Moment) -> None:
        """Die, if this is the moment."""
        if moment is self._moment:
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def around_offsets(self, send_offsets: Callable[..., None]) -> Callable[..., None]:
        """*send_offsets* with a moment before it, and one when the broker has them, unknown to the loop."""

        @wraps(send_offsets)
        def sending(sender: Sender, *args: object) -> None:
            self.come(Moment.BEFORE)
            send_offsets(sender, *args)
            if self._moment is Moment.DURING:
                sender.flush()
                self.come(Moment.DURING)
            self._has_offsets = True

        return sending

    def behind(self, settle: Callable[..., None]) -> Callable[..., None]:
        """*settle*, which ends a commit, with a moment behind it."""

        @wraps(settle)
        def settling(sender: Sender) -> None:
            is_within, self._is_settling = self._is_settling, True
            settle(sender)
            self._is_settling = is_within
            # A commit flushes first.
            if self._has_offsets and not is_within:
                self.come(Moment.AFTER)

        return settling


_death = Death()
for _sender in (ClientSender, WireSender):
    _sender.send_offsets = _death.around_offsets(_sender.send_offsets)
    _sender.commit = _death.behind(_sender.commit)
    _sender.flush = _death.behind(_sender.flush)


class DyingTask(SourceTask):
    """Polls groups of rows from two sources, and arms its death when it is asked at the chosen commit."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._groups = int(config[GROUPS])
        self._ends, self._update = Ends(config[ENDS]), Update(config[UPDATE])
        self._moment = Moment(config[MOMENT])
        self._marks = Path(config[MARKS])
        self._topic = config["topic"]
        stored = self._stored()
        self._note(stored)
        at = Position.stored(stored)
        self._group, self._side = at.group, at.side
        self._rests = False

    def poll(self) -> Polled:
        """One group; nothing when all are read, or when the micro-batch is to end."""
        threading.Event().wait(_POLL_SECONDS)
        if self._rests or self._group == self._groups:
            if self._ends is Ends.ASKED and self._group == self._groups:
                self._commit()
            return None
        group, self._group = self._group, self._group + 1
        if ends_transaction(group):
            self._rests = self._ends is Ends.LAST
            if self._ends is Ends.ASKED:
                self._commit()
        return [*self._side_rows(group), self._main_rows(group)]

    def update_offsets(self, offsets: Offsets) -> Offsets:
        """What the cell says."""
        group, is_idle = self._group - 1, not offsets
        name = "idle" if is_idle else "records" if group == VARIED else None
        mark = self._marks / str(name)
        _death.is_due(self._moment if name and not mark.exists() else None, mark)
        update = moved(self._update, group, is_idle=is_idle)
        return {_PARTITIONS[each]: offset for each, offset in update.items()}

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        _death.is_due(None, Path())

    def _commit(self) -> None:
        assert self.context.transaction is not None
        self.context.transaction.commit_transaction()

    def _side_rows(self, group: int) -> Sequence[SourceBatch]:
        if group < self._side:
            return []
        return [_rows(self._topic, SIDE, [side_value(group)], {"group": [group]})]

    def _main_rows(self, group: int) -> SourceBatch:
        ends = [ROWS * group + row + 1 for row in range(ROWS)]
        return _rows(self._topic, MAIN, main_values(group), {"next": ends})

    def _stored(self) -> Stored:
        found = self.context.offsets.offsets(_PARTITIONS.values())
        return {
            name: dict(offset)  # type: ignore[arg-type]
            for name, partition in _PARTITIONS.items()
            if (offset := found[partition]) is not None
        }

    def _note(self, stored: Stored) -> None:
        for mark in self._marks.iterdir():
            if not mark.read_text():
                mark.write_text(json.dumps(stored))


def _rows(
    topic: str, source: str, values: Sequence[str], offsets: Mapping[str, list[int]]
) -> SourceBatch:
    columns = {name: pa.array(each, pa.int64()) for name, each in offsets.items()}
    return SourceBatch(
        topic=topic,
        values=pa.array(values, pa.utf8()),
        source_partition=_PARTITIONS[source],
        offsets=BatchOffsets(columns=columns),
    )


class NoSettings(Config):
    """No settings."""


class DyingCommits(SourceConnector):
    """The connector with such a task."""

    config_class: ClassVar[type[Config]] = NoSettings
    task_class: ClassVar[type[SourceTask]] = DyingTask

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        self._props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task."""
        return [self._props]

    def has_work(self, offsets: OffsetReader) -> bool | None:
        """Nobody knows."""
        return None

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """Always."""
        return True
