"""What a worker knows of the others of its group: from the leader, which is itself, or from what the brokers tell of it. Pure."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from headrace.herder.answers import WorkerInfo, WorkerState
from headrace.herder.errors import ConflictError, ElsewhereError, NotFoundError
from headrace.herder.group import GroupMember, worker_name
from headrace.herder.group_protocol import (
    ITSELF,
    GroupFormatError,
    MemberFlag,
    MemberNotes,
    Pieces,
    decoded_assignment,
    decoded_metadata,
)
from headrace.kafka.membership import DescribedMember

_log = logging.getLogger(__name__)


def members_in(described: Sequence[DescribedMember], *, group: str) -> Sequence[GroupMember]:
    """The members of *group*, as they were *described*, with what each has since the work was last divided.

    Raises ``ConflictError`` while that is being done: the brokers tell nothing of it then.
    """
    if not any(each.metadata for each in described):
        raise ConflictError(
            f"The group {group!r} is dividing its work at this moment, and the brokers do not tell what its members have. Retry later."
        )
    found = (_member(each) for each in described)
    return [each for each in found if each is not None]


def advertised_url(metadata: bytes) -> str | None:
    """Where a worker answers that has joined with *metadata*; ``None`` where that is not what a worker says."""
    try:
        return decoded_metadata(metadata).url or None
    except GroupFormatError:
        return None


def infos(
    members: Collection[GroupMember], *, leader: str | None, unreachable: str | None = None
) -> Sequence[WorkerInfo]:
    """The *members* by their ids, as they are told; *leader* is the URL of the one that leads, *unreachable* of the one that does not answer."""
    found = (_info(each, leader, unreachable) for each in members)
    return sorted(found, key=lambda each: each.id)


def elsewhere(members: Collection[GroupMember], worker: str, *, group: str) -> ElsewhereError:
    """The error that sends a request on to the one of these *members* with the id *worker*.

    Raises ``NotFoundError`` where there is none, and ``ConflictError`` where it would not know the request.
    """
    found = {worker_name(each.url): each for each in members}
    if worker not in found:
        raise NotFoundError(
            f"The group {group!r} has no worker {worker}, only {', '.join(sorted(found))}."
        )
    if found[worker].notes is None:
        raise ConflictError(
            f"Worker {worker} is one of Kafka Connect, which hands nothing over before it ends. End its process: what it has waits for it for "
            "scheduled.rebalance.max.delay.ms."
        )
    return ElsewhereError(f"Only worker {worker} itself can do this.", url=found[worker].url)


def _member(described: DescribedMember) -> GroupMember | None:
    try:
        said = decoded_metadata(described.metadata)
        given = decoded_assignment(described.assignment) if described.assignment else None
    except GroupFormatError as error:
        _log.warning(
            "Member %s of the group says what cannot be read: %s", described.member_id, error
        )
        return None
    before = {} if said.allocation is None else said.allocation.assigned
    has = _names(before)
    if given is not None:
        has = has - _names(given.revoked) | _names(given.assigned)
    return GroupMember(url=said.url, connectors=has, notes=said.notes)


def _names(pieces: Pieces) -> frozenset[str]:
    return frozenset(name for name, numbers in pieces.items() if ITSELF in numbers)


def _info(member: GroupMember, leader: str | None, unreachable: str | None) -> WorkerInfo:
    notes = member.notes or MemberNotes()
    state = WorkerState.ACTIVE
    if member.url == unreachable:
        state = WorkerState.UNREACHABLE
    elif notes.flags & MemberFlag.LEAVING:
        state = WorkerState.LEAVING
    elif notes.flags & MemberFlag.TAKES_NOTHING:
        state = WorkerState.ARRIVING
    return WorkerInfo(
        id=worker_name(member.url),
        url=member.url,
        version=notes.version,
        slots=notes.slots,
        is_leader=member.url == leader,
        state=state,
        connectors=sorted(member.connectors),
    )
