"""What a connector of :mod:`end_to_end.dying_commits` leaves in Kafka, commit by commit; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Offset = Mapping[str, int]
Stored = Mapping[str, Offset | None]
"""Offsets by their source; ``None`` removes, or is removed."""

MAIN, SIDE, OTHER = "main", "side", "other"
ROWS = 3
"""How many rows of MAIN a group has."""
VARIED = 2
"""The group at whose commit offsets are moved, and after which the process dies."""


class Ends(StrEnum):
    """Where commits are made."""

    POLL = "each poll"
    PIECE = "each piece of a poll"
    ASKED = "where the task asks"
    LAST = "the end of the micro-batch"


class Update(StrEnum):
    """What ``update_offsets`` does."""

    NOTHING = "nothing"
    ADD = "add"
    REPLACE = "replace"
    TOMBSTONE = "tombstone"


class Moment(StrEnum):
    """When the process dies: of a commit's flush of offsets."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the matrix; of a *planned* connector the driver looks after what is idle, and does not die."""

    ends: Ends
    exactly_once: bool
    update: Update
    moment: Moment
    planned: bool = False

    @property
    def lasts(self) -> bool:
        """Whether the commit that the process dies in is there afterwards."""
        reached = self.moment is Moment.DURING and not self.exactly_once
        return reached or self.moment is Moment.AFTER


@dataclass(frozen=True, slots=True)
class Position:
    """The group to go on with, and that of SIDE, which is ahead of it in the middle of a poll."""

    group: int
    side: int

    @classmethod
    def stored(cls, stored: Stored) -> Position:
        """Where *stored* offsets tell a task to go on."""
        group = (stored.get(MAIN) or {"next": 0})["next"] // ROWS
        side = stored.get(SIDE)
        return cls(group, group if side is None else max(group, side["group"] + 1))


def moved(update: Update, group: int, *, is_idle: bool) -> Stored:
    """What ``update_offsets`` returns when *group* is the last that was polled."""
    if not is_idle and group != VARIED:
        return {}
    looked = 1000 + group if is_idle else group
    match update:
        case Update.NOTHING:
            return {}
        case Update.ADD:
            return {OTHER: {"looked": looked}}
        case Update.REPLACE:
            return {SIDE: {"group": group, "looked": looked}}
        case Update.TOMBSTONE:
            return {SIDE: None}


def side_value(group: int) -> str:
    """The record of SIDE in *group*."""
    return f"side {group}"


def main_values(group: int) -> list[str]:
    """The records of MAIN in *group*."""
    return [str(row) for row in range(ROWS * group, ROWS * (group + 1))]


def ends_transaction(group: int) -> bool:
    """Whether transactions of several polls end behind *group*: the second one holds two groups."""
    return group % 2 == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Records that are sent, and their offsets; *asked* is the group at which the task is asked, if it is."""

    values: list[str]
    pending: Stored
    asked: int | None = None
    is_idle: bool = False


@dataclass(kw_only=True)
class Outcome:
    """What is found afterwards: values in order, offsets of each source in order, and where tasks went on."""

    values: list[str] = field(default_factory=list[str])
    offsets: dict[str, list[Offset | None]] = field(default_factory=dict[str, list[Offset | None]])
    resumed: list[Stored] = field(default_factory=list[Stored])


@dataclass
class Model:
    """Runs a cell: :meth:`read` up to a number of groups, and again further; *outcome* is what is to be found."""

    cell: Cell
    outcome: Outcome = field(default_factory=Outcome)
    stored: dict[str, Offset] = field(default_factory=dict[str, Offset])
    _is_settled: bool = True

    def read(self, groups: int) -> None:
        """What one run does, dying where the cell says, each time once."""
        while self._interrupted(groups):
            self.outcome.resumed.append(dict(self.stored))
            self._is_settled = not self.cell.exactly_once
        self._end()

    def _interrupted(self, groups: int) -> bool:
        """Whether the process dies before all is done."""
        for commit in commits(self.cell.ends, Position.stored(self.stored), groups):
            if commit.is_idle and self.cell.planned:
                continue
            entries = self._entries(commit)
            if not (entries or commit.values):
                continue
            dies = self._dies(commit)
            lasts = self.cell.lasts or not dies
            if lasts or not self.cell.exactly_once:
                self.outcome.values += commit.values
            if lasts:
                self._store(entries)
            if dies:
                return True
            if self.cell.ends is Ends.LAST and not self.cell.planned:
                self._end()
        return False

    def _end(self) -> None:
        """The connector ends: after a death, what is committed is written again behind what was aborted."""
        if not self._is_settled:
            self._store(dict(self.stored))
            self._is_settled = True

    def _dies(self, commit: Commit) -> bool:
        deaths = len(self.outcome.resumed)
        return (deaths, True) in {(0, commit.asked == VARIED), (1, commit.is_idle)}

    def _entries(self, commit: Commit) -> Stored:
        if commit.asked is None:
            return commit.pending
        update = moved(self.cell.update, commit.asked, is_idle=commit.is_idle)
        known = {**self.stored, **commit.pending}
        news = {each: offset for each, offset in update.items() if known.get(each) != offset}
        return {**commit.pending, **news}

    def _store(self, entries: Stored) -> None:
        for source, offset in entries.items():
            self.outcome.offsets.setdefault(source, []).append(offset)
            if offset is None:
                self.stored.pop(source, None)
            else:
                self.stored[source] = offset


def commits(ends: Ends, at: Position, groups: int) -> Iterator[Commit]:
    """The commits of a task that begins *at* a position and reads to the end of *groups*."""
    values, pending = list[str](), dict[str, Offset | None]()
    for group in range(at.group, groups):
        if group >= at.side:
            values.append(side_value(group))
            pending[SIDE] = {"group": group}
            if ends is Ends.PIECE:
                yield Commit(values=values, pending=pending)
                values, pending = [], {}
        values += main_values(group)
        pending[MAIN] = {"next": ROWS * (group + 1)}
        if ends in {Ends.POLL, Ends.PIECE} or ends_transaction(group):
            yield Commit(values=values, pending=pending, asked=group)
            values, pending = [], {}
    yield Commit(values=[], pending={}, asked=groups - 1, is_idle=True)
