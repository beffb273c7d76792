"""The topic of changes of offsets, which Kafka Connect does not have: its records, and the history that they add up to. Pure.

A change has as many ``change-<number>-<part>`` records as its size takes, which stay as they are, and one ``state-<number>`` that
says what becomes of it. It counts from its state on, which is written last, until that is removed, which happens first.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple

from headrace.kafka.sender import OffsetEntry
from headrace.storage.offsets_json import offsets_of_text, offsets_text
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Operation,
    Phase,
    Retention,
    StoredConnector,
)
from headrace.storage.topic_records import (
    Content,
    UnreadableRecordError,
    key_text,
    number_of,
    parsed,
)

# Half of what topics take by default.
_PART_CHARACTERS: Final = 500_000
_CHANGE: Final = "change-"
_STATE: Final = "state-"
_DELETED: Final = "deleted-"


class ChangeState(NamedTuple):
    """What becomes of a change: *phase* while it has not finished, then whether it was *done*."""

    phase: Phase | None
    done: bool


def change_entries(intent: Intent) -> list[OffsetEntry]:
    """The records of a change that begins, its state last."""
    entry = intent.entry
    stored = intent.stored
    content = {
        "connector": entry.connector,
        "operation": entry.operation,
        "who": entry.who,
        "at": entry.at_ms,
        "before": offsets_text(entry.before),
        "after": offsets_text(entry.after),
        "undoes": entry.undoes,
        "stored": None
        if stored is None
        else {"properties": dict(stored.config), "state": stored.target_state},
    }
    text = json.dumps(content, separators=(",", ":"))
    pieces = [text[at : at + _PART_CHARACTERS] for at in range(0, len(text), _PART_CHARACTERS)]
    return [
        *(
            _record(_part_key(entry.id, part), {"parts": len(pieces), "text": piece})
            for part, piece in enumerate(pieces)
        ),
        state_entry(entry.id, ChangeState(intent.phase, done=False)),
    ]


def state_entry(number: int, state: ChangeState) -> OffsetEntry:
    """The record that says what becomes of the change of that *number*."""
    return _record(f"{_STATE}{number}", {"phase": state.phase, "done": state.done})


def deletion_entry(connector: str, last: int) -> OffsetEntry:
    """The record which says that *connector* was deleted after the change of number *last*."""
    return _record(f"{_DELETED}{connector}", {"last": last})


def _record(key: str, value: object) -> OffsetEntry:
    # Text in offsets may be no Unicode, which only escapes can hold.
    return key.encode(), json.dumps(value, separators=(",", ":")).encode()


def _part_key(number: int, part: int) -> str:
    return f"{_CHANGE}{number}-{part}"


@dataclass(slots=True)
class _Records:
    """The records of one change that are there: its parts, of which there are *count*, and its state."""

    parts: dict[int, str] = field(default_factory=dict[int, str])
    count: int = 0
    state: ChangeState | None = None
    begun: Intent | None = None
    """What the parts say, once all are there; they do not change."""


class _Aged(NamedTuple):
    """A change in the order of its time."""

    at_ms: int
    number: int


@dataclass(slots=True)
class ChangesTopic:
    """What the records of the topic add up to, in the order in which they were written. One thread applies them."""

    _changes: dict[int, _Records] = field(default_factory=dict[int, _Records])
    _deleted: dict[str, int] = field(default_factory=dict[str, int])
    # The numbers of the changes of which all parts are there: by connector, and sorted by time.
    _of_connector: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    _by_age: list[_Aged] = field(default_factory=list[_Aged])
    _unfinished: set[int] = field(default_factory=set[int])

    @property
    def last(self) -> int:
        """The highest number that a change has; the newest one is never removed."""
        return max(self._changes, default=0)

    def entries(self, connector: str) -> list[HistoryEntry]:
        """The changes of *connector*, the newest first."""
        last = self._deleted.get(connector, 0)
        return [
            replace(each.entry, of_deleted=each.entry.id <= last)
            for each in reversed(self._complete(self._of_connector.get(connector, ())))
        ]

    def open_intents(self) -> list[Intent]:
        """The changes that have not finished, the oldest first."""
        return self._complete(self._unfinished)

    def removals(self, newest: HistoryEntry, keep: Retention) -> list[OffsetEntry]:
        """The tombstones of those that *keep* excludes once *newest* has begun, each state before what it is about."""
        oldest = newest.at_ms - keep.max_age // timedelta(milliseconds=1)
        outdated = self._by_age[: bisect_left(self._by_age, _Aged(oldest, 0))]
        of_connector = self._complete(self._of_connector.get(newest.connector, ()))
        surplus = [*(each.entry.id for each in of_connector), newest.id][: -keep.entries]
        gone = {*surplus, *(each.number for each in outdated)} - {newest.id}
        return [
            tombstone
            for number in sorted(gone)
            if self._is_finished(number)
            for tombstone in self._tombstones(number)
        ]

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take in the next record.

        Raises :class:`~headrace.storage.topic_records.UnreadableRecordError` for one that has to be passed over.
        """
        text, content = key_text(key), parsed(value)
        if text.startswith(_DELETED):
            if content is not None:
                self._deleted[text.removeprefix(_DELETED)] = number_of(content, "last")
        elif text.startswith(_STATE):
            self._put_state(_number_in(text.removeprefix(_STATE)), content)
        elif text.startswith(_CHANGE):
            number, _, part = text.removeprefix(_CHANGE).partition("-")
            self._put_part(_number_in(number), _number_in(part), content)
        else:
            raise UnreadableRecordError(f"its key {text!r} is not known")

    def _complete(self, numbers: Iterable[int]) -> list[Intent]:
        """Those of the changes with these *numbers* of which all records are there, by their numbers."""
        found = list[Intent]()
        for records in map(self._changes.__getitem__, sorted(numbers)):
            begun, state = records.begun, records.state
            if begun is not None and state is not None:
                entry = replace(begun.entry, done=state.done)
                found.append(replace(begun, entry=entry, phase=state.phase or begun.phase))
        return found

    def _is_finished(self, number: int) -> bool:
        state = self._changes[number].state
        return state is not None and state.phase is None

    def _tombstones(self, number: int) -> Iterable[OffsetEntry]:
        yield f"{_STATE}{number}".encode(), None
        for part in range(self._changes[number].count):
            yield _part_key(number, part).encode(), None

    def _put_state(self, number: int, content: Content | None) -> None:
        state = None if content is None else _state(content)
        self._changes.setdefault(number, _Records()).state = state
        if state is None or state.phase is None:
            self._unfinished.discard(number)
        else:
            self._unfinished.add(number)
        self._forget_empty(number)

    def _put_part(self, number: int, part: int, content: Content | None) -> None:
        text = None if content is None else _text(content, "text")
        count = 0 if content is None else number_of(content, "parts")
        records = self._changes.setdefault(number, _Records())
        if text is None:
            records.parts.pop(part, None)
            self._put_begun(records, None)
            self._forget_empty(number)
            return
        records.count, records.parts[part] = count, text
        if all(each in records.parts for each in range(count)):
            whole = "".join(map(records.parts.__getitem__, range(count)))
            self._put_begun(records, _intent(number, whole))

    def _put_begun(self, records: _Records, begun: Intent | None) -> None:
        """Keep what the parts say, and where it is found."""
        if records.begun is not None:
            before = records.begun.entry
            del self._by_age[bisect_left(self._by_age, _Aged(before.at_ms, before.id))]
            numbers = self._of_connector[before.connector]
            numbers.remove(before.id)
            if not numbers:
                del self._of_connector[before.connector]
        records.begun = begun
        if begun is not None:
            entry = begun.entry
            insort(self._by_age, _Aged(entry.at_ms, entry.id))
            self._of_connector.setdefault(entry.connector, set()).add(entry.id)

    def _forget_empty(self, number: int) -> None:
        records = self._changes[number]
        if records.state is None and not records.parts:
            del self._changes[number]


def _intent(number: int, text: str) -> Intent:
    """What the whole *text* of a change says."""
    try:
        content = json.loads(text)
        stored = content["stored"]
        entry = HistoryEntry(
            id=number,
            connector=content["connector"],
            operation=Operation(content["operation"]),
            who=content["who"],
            at_ms=content["at"],
            before=offsets_of_text(content["before"]),
            after=offsets_of_text(content["after"]),
            undoes=content["undoes"],
        )
        connector = stored and StoredConnector(
            name=entry.connector, config=stored["properties"], target_state=stored["state"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableRecordError(f"it is no change of offsets ({error!r})") from error
    return Intent(entry=entry, stored=connector)


def _state(content: Content) -> ChangeState:
    phase, done = content.get("phase"), content.get("done")
    if not isinstance(done, bool) or not (phase is None or phase in set(Phase)):
        raise UnreadableRecordError("it is no state of a change")
    return ChangeState(None if phase is None else Phase(str(phase)), done)


def _text(content: Content, name: str) -> str:
    found = content.get(name)
    if not isinstance(found, str):
        raise UnreadableRecordError(f"its {name} is no string")
    return found


def _number_in(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UnreadableRecordError(f"its key has {text!r} where a number is expected")
    return int(text)
