"""Where each task's next listing may begin, kept in the offsets topic across restarts.

A mark says: of the objects that this task reads, nothing before this key is unfinished. Only the marks of
all tasks together say so of all objects, and only as long as objects are shared out in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Generic

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.sources.entry_codec import loaded
from headrace.sources.keys import K, KeyCodec
from headrace.sources.lookback import Lookback
from headrace.sources.offset_entry import DONE
from headrace.sources.unfinished import Unfinished

TASK_ID, TASKS = "task.id", "tasks.max"
MARKS, STALE_MARKS, UNFINISHED = "native.marks", "native.marks.stale", "native.unfinished"
_TASK, _TASKS, _KEY = "lookbackOfTask", "tasks", "key"


def mark_partition(task: int) -> SourcePartition:
    """The source partition of a task's mark."""
    return SourcePartition({_TASK: task})


def mark_offset(key: str, *, tasks: int) -> SourceOffset:
    """A mark at *key*, the text of a native key, of one of *tasks* tasks."""
    return {_KEY: key, _TASKS: tasks}


def marks_for(
    known: Mapping[SourcePartition, SourceOffset], *, tasks: int, by_key: bool
) -> dict[str, str]:
    """What the tasks are told: the keys of all marks, and the marks that are of no use any more.

    No keys when a mark is missing or was made for another number of tasks. *by_key* says that objects are
    named by their keys alone: those that are not done are told besides, to be looked for whatever the marks
    say.
    """
    marks = {
        partition[_TASK]: offset for partition, offset in known.items() if set(partition) == {_TASK}
    }
    keys = [offset.get(_KEY) for offset in marks.values() if offset.get(_TASKS) == tasks]
    complete = set(marks) == set(range(tasks)) and len(keys) == tasks
    stale = [task for task in marks if not isinstance(task, int) or task >= tasks]
    return {
        MARKS: json.dumps(keys if complete else []),
        STALE_MARKS: json.dumps(stale),
        UNFINISHED: json.dumps(_unfinished(known) if by_key else []),
    }


def _unfinished(known: Mapping[SourcePartition, SourceOffset]) -> list[object]:
    """The keys of entries that are not done: half read, in quarantine, or set by a person."""
    return [
        loaded({_KEY: partition[_KEY]})[_KEY]
        for partition, offset in known.items()
        if set(partition) == {_KEY} and not offset.get(DONE)
    ]


def marked_keys(config: Mapping[str, str]) -> list[str]:
    """The keys of all marks; empty when a listing has to begin at the beginning."""
    return json.loads(config.get(MARKS, "[]"))


def unfinished_keys(config: Mapping[str, str]) -> list[str]:
    """The keys of objects that are not done, where keys alone name objects."""
    return json.loads(config.get(UNFINISHED, "[]"))


def stale_marks(config: Mapping[str, str]) -> Iterable[SourcePartition]:
    """The partitions of marks to remove."""
    return [mark_partition(task) for task in json.loads(config.get(STALE_MARKS, "[]"))]


class TaskMark(Generic[K]):
    """Moves one task's mark with its commits. Used on the task's thread.

    *key_of* knows the native key of an object that this task has read. Without a *codec* there are no marks.
    They stay before everything that is *unfinished*, where that is given.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        size: int,
        codec: KeyCodec[K] | None,
        key_of: Callable[[SourcePartition], K | None],
        unfinished: Unfinished[K] | None = None,
    ) -> None:
        self._task, self._tasks = int(config.get(TASK_ID, "0")), int(config.get(TASKS, "1"))
        self._stale = list(stale_marks(config)) if self._task == 0 else []
        self._lookback = Lookback[K](size)
        self._codec = codec
        self._key_of = key_of
        self._unfinished = unfinished
        self._told: K | None = None

    def due(self, done: Iterable[SourcePartition]) -> Offsets:
        """What to write with the commit that covers the last records of *done*."""
        for partition in done:
            key = self._key_of(partition)
            if key is not None:
                self._lookback.add(key)
        due: dict[SourcePartition, SourceOffset | None] = dict.fromkeys(self._stale)
        self._stale = []
        start = self._lookback.start
        held = start is None or (self._unfinished is not None and self._unfinished.reaches(start))
        if self._codec is not None and start is not None and start != self._told and not held:
            self._told = start
            offset = mark_offset(self._codec.encode(start), tasks=self._tasks)
            due[mark_partition(self._task)] = offset
        return due
