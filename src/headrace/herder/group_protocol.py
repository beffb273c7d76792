"""What the workers of a Connect group tell each other through the broker, as Kafka Connect's bytes and back. Pure.

Three versions are spoken, under the names of the group's protocols: ``default`` (0) stops all work at each rebalance, ``compatible``
(1) and ``sessioned`` (2, KIP-507) do not (KIP-415). After the last field that Kafka Connect reads comes a block of headrace's own,
which its readers pass over.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag
from typing import Final, TypeAlias

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
# "hdr1", so that whatever another client may put there is not taken for ours.
_MAGIC: Final = 0x68647231
_NULL: Final = -1
UNREACHABLE_OFFSET: Final = 2**63 - 1
"""An offset of the config topic that no one can have read."""
ITSELF: Final = -1
"""The connector itself, among the numbers of its tasks."""
BEHIND: Final = 1
"""The error of a leader that has not read the config topic as far as others have."""
REFUSED: Final = 2
"""The error for who is not taken: not among Kafka Connect's, and sent to workers of headrace alone."""

Pieces: TypeAlias = Mapping[str, Sequence[int]]
"""What is assigned: numbers of tasks by the name of their connector; -1 is the connector itself."""


class ProtocolVersion(IntEnum):
    """The versions of the bytes, by the names that the group knows them by in lower case."""

    DEFAULT = 0
    COMPATIBLE = 1
    SESSIONED = 2

    @property
    def protocol(self) -> str:
        """The name under which it is offered to the group."""
        return self.name.lower()

    @classmethod
    def named(cls, setting: str) -> ProtocolVersion:
        """That of a value of ``connect.protocol``."""
        return next(each for each in cls if each.setting == setting.lower())

    @property
    def setting(self) -> str:
        """The value of ``connect.protocol`` with which it is the first that is offered."""
        return "eager" if self is ProtocolVersion.DEFAULT else self.protocol


class GroupFormatError(ValueError):
    """Bytes that no worker of Kafka Connect or headrace has written; the message says what is wrong."""


class MemberFlag(IntFlag):
    """What a headrace worker says about itself."""

    NONE = 0
    LEAVING = 1
    """It hands over its work before it leaves (KIP-995)."""
    UNDERSTANDS_LEAVING = 2
    TAKES_NOTHING = 4
    """It keeps what it has, and is given nothing more."""
    BY_TASK = 8
    """Of an assignment: connectors and tasks are divided each by itself, as workers of Kafka Connect are among the members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberNotes:
    """headrace's own block about a member.

    *generation* is the last one that it completed, -1 at first: a broker starts no rebalance for a member whose bytes are the same as
    before. *slots* is how many tasks it can run at once, *version* the headrace that it runs, and *topics* are
    those that it takes for the group's, in words.
    """

    flags: MemberFlag = MemberFlag.NONE
    generation: int = -1
    slots: int = 0
    version: str = ""
    topics: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the leader gives a member.

    *error* is 0, :data:`BEHIND`, after which everyone joins again, or :data:`REFUSED`. *config_offset* is the offset after the last record
    of the config topic that the assignment rests on. *delay_ms* is how long the member waits before it joins again, 0 for not at all.
    *leader_understands_leaving* is set by headrace alone, and so is *is_by_task*, where connectors and tasks are divided each by itself;
    *refusal* is why the group does not take a worker of headrace.
    """

    version: ProtocolVersion = ProtocolVersion.SESSIONED
    error: int = 0
    leader: str = ""
    leader_url: str = ""
    config_offset: int = 0
    assigned: Pieces = field(default_factory=dict[str, Sequence[int]])
    revoked: Pieces = field(default_factory=dict[str, Sequence[int]])
    delay_ms: int = 0
    leader_understands_leaving: bool = False
    is_by_task: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """What a member says when it joins.

    *allocation* is what it runs, as the last assignment that it got with everything in ``assigned``; ``None`` when it has nothing.
    *notes* are ``None`` for a member that is not headrace.
    """

    version: ProtocolVersion = ProtocolVersion.SESSIONED
    url: str
    config_offset: int
    allocation: Assignment | None = None
    notes: MemberNotes | None = None


def in_version(metadata: MemberMetadata, version: ProtocolVersion) -> MemberMetadata:
    """The same, with what it has, in this version."""
    allocation = metadata.allocation and replace(metadata.allocation, version=version)
    return replace(metadata, version=version, allocation=allocation)


def encoded_metadata(metadata: MemberMetadata) -> bytes:
    """The bytes with which a worker joins."""
    parts = [
        _SHORT.pack(metadata.version),
        _string(metadata.url),
        _LONG.pack(metadata.config_offset),
    ]
    if metadata.version is ProtocolVersion.DEFAULT and metadata.notes is None:
        return b"".join(parts)
    # After a version of 0, too: Kafka Connect passes over it, or reads it as that of the later ones.
    if metadata.allocation is None:
        parts.append(_INT.pack(_NULL))
    else:
        allocation = encoded_assignment(metadata.allocation)
        parts += [_INT.pack(len(allocation)), allocation]
    if metadata.notes is not None:
        notes = metadata.notes
        parts += [
            _INT.pack(_MAGIC),
            _SHORT.pack(notes.flags),
            _INT.pack(notes.generation),
            _INT.pack(notes.slots),
            _string(notes.version),
            _string(notes.topics),
        ]
    return b"".join(parts)


def decoded_metadata(data: bytes) -> MemberMetadata:
    """What a member says; raises :class:`GroupFormatError`."""
    reader = _Reader(data)
    version = reader.version()
    url = reader.string()
    config_offset = reader.long()
    # Kafka Connect reads what is missing at the end as null or 0.
    length = reader.int() if reader.has_more else _NULL
    allocation = None if length == _NULL else decoded_assignment(reader.bytes(length))
    notes = _notes(reader)
    return MemberMetadata(
        version=version, url=url, config_offset=config_offset, allocation=allocation, notes=notes
    )


def encoded_assignment(assignment: Assignment) -> bytes:
    """The bytes with which the leader answers a member, or a member reports what it runs."""
    parts = [
        _SHORT.pack(assignment.version),
        _SHORT.pack(assignment.error),
        _string(assignment.leader),
        _string(assignment.leader_url),
        _LONG.pack(assignment.config_offset),
        _pieces(assignment.assigned),
    ]
    if assignment.version is ProtocolVersion.DEFAULT and not assignment.leader_understands_leaving:
        return b"".join(parts)
    parts += [_pieces(assignment.revoked), _INT.pack(assignment.delay_ms)]
    if assignment.leader_understands_leaving:
        flags = MemberFlag.UNDERSTANDS_LEAVING | MemberFlag.BY_TASK * assignment.is_by_task
        parts += [_INT.pack(_MAGIC), _SHORT.pack(flags)]
        parts += [_string(assignment.refusal)] if assignment.refusal else []
    return b"".join(parts)


def decoded_assignment(data: bytes) -> Assignment:
    """What a member was given, or runs; raises :class:`GroupFormatError`."""
    reader = _Reader(data)
    version = reader.version()
    error = reader.short()
    leader, leader_url = reader.string(), reader.string()
    config_offset = reader.long()
    assigned = reader.pieces()
    revoked = reader.pieces() if reader.has_more else {}
    delay_ms = reader.int() if reader.has_more else 0
    flags = reader.short() if reader.begins_own_block() else 0
    refusal = reader.string() if flags and reader.has_more else ""
    return Assignment(
        version=version,
        error=error,
        leader=leader,
        leader_url=leader_url,
        config_offset=config_offset,
        assigned=assigned,
        revoked=revoked,
        delay_ms=delay_ms,
        leader_understands_leaving=bool(flags & MemberFlag.UNDERSTANDS_LEAVING),
        is_by_task=bool(flags & MemberFlag.BY_TASK),
        refusal=refusal,
    )


def _notes(reader: _Reader) -> MemberNotes | None:
    if not reader.begins_own_block():
        return None
    flags, generation = MemberFlag(reader.short()), reader.int()
    # The first two fields are those of the first headrace; a later one may have more after these.
    slots = reader.int() if reader.has_more else 0
    version = reader.string() if reader.has_more else ""
    topics = reader.string() if reader.has_more else ""
    return MemberNotes(
        flags=flags, generation=generation, slots=slots, version=version, topics=topics
    )


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _SHORT.pack(len(encoded)) + encoded


def _pieces(pieces: Pieces) -> bytes:
    parts = [_INT.pack(len(pieces))]
    for connector, tasks in sorted(pieces.items()):
        parts += [_string(connector), _INT.pack(len(tasks)), *map(_INT.pack, tasks)]
    return b"".join(parts)


class _Reader:
    """Reads one field after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)

    def version(self) -> ProtocolVersion:
        number = self.short()
        if number < 0:
            raise GroupFormatError(f"the version {number} is not known")
        # Later versions only add fields at the end, and readers pass over what they do not know.
        return ProtocolVersion(min(number, max(ProtocolVersion)))

    def short(self) -> int:
        return self._number(_SHORT)

    def int(self) -> int:
        return self._number(_INT)

    def long(self) -> int:
        return self._number(_LONG)

    def bytes(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise _too_short(length, self._at, self._data)
        found, self._at = self._data[self._at : end], end
        return found

    def string(self) -> str:
        length = self.short()
        if length == _NULL:
            return ""
        try:
            return self.bytes(length).decode()
        except UnicodeDecodeError as error:
            raise _not_utf8(error) from error

    def pieces(self) -> Pieces:
        found: dict[str, Sequence[int]] = {}
        # Most connectors have as many tasks as others.
        known: dict[bytes, Sequence[int]] = {}
        count, data, at = self._count(), self._data, self._at
        try:
            # A group has tens of thousands of them, and its leader reads them while all wait.
            for _ in range(count):
                begin = at + _SHORT.size
                end = begin + max(0, _SHORT.unpack_from(data, at)[0])
                at = end + _INT.size
                tasks_end = at + _INT.size * max(0, _INT.unpack_from(data, end)[0])
                tasks = data[at:tasks_end]
                if tasks not in known:
                    known[tasks] = struct.unpack(f">{(tasks_end - at) // _INT.size}i", tasks)
                found[data[begin:end].decode()] = known[tasks]
                at = tasks_end
        except struct.error as error:
            raise _too_short(at - self._at, self._at, data) from error
        except UnicodeDecodeError as error:
            raise _not_utf8(error) from error
        if at > len(data):
            raise _too_short(at - self._at, self._at, data)
        self._at = at
        return found

    def begins_own_block(self) -> bool:
        begins = self._data[self._at : self._at + _INT.size] == _INT.pack(_MAGIC)
        self._at += _INT.size * begins
        return begins

    def _count(self) -> int:
        count = self._number(_INT)
        if count > len(self._data) - self._at:
            raise GroupFormatError(f"a list of {count} begins at {self._at}, and there is less")
        return max(count, 0)

    def _number(self, form: struct.Struct) -> int:
        at, self._at = self._at, self._at + form.size
        if self._at > len(self._data):
            raise _too_short(form.size, at, self._data)
        (number,) = form.unpack_from(self._data, at)
        return number


def _too_short(length: int, at: int, data: bytes) -> GroupFormatError:
    return GroupFormatError(f"a field of {length} bytes begins at {at}, and there are {len(data)}")


def _not_utf8(error: UnicodeDecodeError) -> GroupFormatError:
    return GroupFormatError(f"a text is not UTF-8: {error}")
