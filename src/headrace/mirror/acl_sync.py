"""Which rights on remote topics follow from those on their source topics. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from headrace.kafka.wire.acls import Acl
from headrace.mirror.filters import CopiedTopics

TOPIC: Final = "TOPIC"
LITERAL: Final = "LITERAL"
ALLOW: Final = "ALLOW"
ALL: Final = "ALL"
READ: Final = "READ"
WRITE: Final = "WRITE"


def remote_acls(acls: Iterable[Acl], topics: CopiedTopics) -> tuple[Acl, ...]:
    """The rights on remote topics, of *acls* of the source.

    Those of single topics that are copied. Only the mirror writes to a remote topic: who may write to the source topic gets
    nothing, and who may do everything may read.
    """
    found = (
        _remote(each, topics)
        for each in acls
        if each.resource == TOPIC
        and each.pattern == LITERAL
        and (each.permission, each.operation) != (ALLOW, WRITE)
        and topics.copies(each.name)
    )
    return tuple(dict.fromkeys(found))


def acls_missing(wanted: Iterable[Acl], existing: Collection[Acl]) -> tuple[Acl, ...]:
    """Those of *wanted* that the target does not have yet. None is ever taken away there."""
    return tuple(each for each in wanted if each not in existing)


def _remote(acl: Acl, topics: CopiedTopics) -> Acl:
    is_everything = (acl.permission, acl.operation) == (ALLOW, ALL)
    operation = READ if is_everything else acl.operation
    return acl._replace(name=topics.remote_topic(acl.name), operation=operation)
