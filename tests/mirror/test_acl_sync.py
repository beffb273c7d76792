"""Which rights on remote topics there are."""

from __future__ import annotations

from headrace.kafka.wire.acls import Acl
from headrace.mirror.acl_sync import acls_missing, remote_acls
from headrace.mirror.settings import MirrorSourceConfig

TOPICS = MirrorSourceConfig.parse(
    {"source.cluster.alias": "a", "target.cluster.alias": "b", "topics": "t.*"}
).topics_copied
READ = Acl("TOPIC", "t", "LITERAL", "User:x", "*", "READ", "ALLOW")


def test_readers_may_read_the_remote_topic_and_writers_may_not_write():
    """Who may do everything may read; what is forbidden stays so."""
    acls = [
        READ,
        READ._replace(operation="ALL", principal="User:y"),
        READ._replace(operation="WRITE"),
        READ._replace(operation="WRITE", permission="DENY"),
    ]
    assert remote_acls(acls, TOPICS) == (
        READ._replace(name="a.t"),
        READ._replace(name="a.t", principal="User:y"),
        READ._replace(name="a.t", operation="WRITE", permission="DENY"),
    )


def test_rights_on_other_things_are_left():
    """Groups, prefixes, and topics that are not copied."""
    acls = [
        READ._replace(resource="GROUP"),
        READ._replace(pattern="PREFIXED"),
        READ._replace(name="u"),
    ]
    assert remote_acls(acls, TOPICS) == ()


def test_what_becomes_the_same_is_there_once_and_sent_once():
    """Reading, and everything, are both reading."""
    [found] = remote_acls([READ, READ._replace(operation="ALL")], TOPICS)
    assert acls_missing([found], [found]) == ()
    assert acls_missing([found], [READ]) == (found,)
