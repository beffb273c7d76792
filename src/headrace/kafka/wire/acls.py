"""The ACLs of topics: read, and created.

The client library answers a request for ACLs that a broker has refused, or has no authorizer for, with none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from kafka.protocol.admin.acl import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    CreateAclsRequest,
    DescribeAclsRequest,
)

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.error_codes import NONE, Reaction, error_code

_VERSIONS: Final = (1, 3)
_NO_AUTHORIZER: Final = 54
_FORBIDDEN: Final = 31
# A broker has less time for a larger request than it takes.
_AT_ONCE: Final = 1000


class Acl(NamedTuple):
    """That *principal* at *host* may (``ALLOW``) or may not (``DENY``) do something with a resource; Kafka's own words."""

    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


def topic_acls(cluster: Cluster, deadline: Deadline) -> tuple[Acl, ...] | None:
    """The ACLs of topics; ``None`` where the brokers have no authorizer.

    Raises :class:`~headrace.connect.errors.TaskFailedError` if this client may not see them, and
    :class:`~headrace.connect.errors.RetriableError` without an answer.
    """
    request = DescribeAclsRequest(
        resource_type_filter=ACLResourceType.TOPIC,
        resource_name_filter=None,
        pattern_type_filter=ACLResourcePatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
    )
    doing = "a request for the ACLs of topics"
    answer = cluster.ask_any(request, doing, deadline, versions=_VERSIONS)
    if answer.error_code == _NO_AUTHORIZER:
        return None
    if answer.error_code != NONE:
        raise _refusal(answer.error_code, answer.error_message, doing, "Describe")
    return tuple(
        Acl(
            ACLResourceType(resource.resource_type).name,
            resource.resource_name,
            ACLResourcePatternType(resource.pattern_type).name,
            each.principal,
            each.host,
            ACLOperation(each.operation).name,
            ACLPermissionType(each.permission_type).name,
        )
        for resource in answer.resources
        for each in resource.acls
    )


def create_acls(cluster: Cluster, acls: Collection[Acl], deadline: Deadline) -> None:
    """Create *acls*; one that exists is left as it is. Brokers may not have them all on return.

    Raises as :func:`topic_acls` does for the first one that is refused, once all have been asked for.
    """
    creation_class = CreateAclsRequest.AclCreation
    doing = "the creation of ACLs of topics"
    wanted = [*acls]
    refusals = list[ConnectError]()
    for begin in range(0, len(wanted), _AT_ONCE):
        some = wanted[begin : begin + _AT_ONCE]
        request = CreateAclsRequest(
            creations=[
                creation_class(
                    resource_type=ACLResourceType[each.resource],
                    resource_name=each.name,
                    resource_pattern_type=ACLResourcePatternType[each.pattern],
                    principal=each.principal,
                    host=each.host,
                    operation=ACLOperation[each.operation],
                    permission_type=ACLPermissionType[each.permission],
                )
                for each in some
            ]
        )
        answer = cluster.ask_any(request, doing, deadline, versions=_VERSIONS)
        for acl, result in zip(some, answer.results, strict=True):
            if result.error_code != NONE:
                what = (
                    f"{doing}, {acl.permission} {acl.operation} on {acl.name!r} for {acl.principal}"
                )
                refusals.append(_refusal(result.error_code, result.error_message, what, "Alter"))
    for first in refusals:
        raise first


def _refusal(code: int, message: str | None, doing: str, right: str) -> ConnectError:
    error = error_code(code)
    name = error.name if error else str(code)
    reason = f"{message.rstrip('.')} ({name})" if message else name
    if error is not None and error.reaction is not Reaction.FAIL:
        return RetriableError(f"Kafka did not answer {doing}: {reason}.")
    advice = f" Grant this client {right} on the cluster." if code == _FORBIDDEN else ""
    return TaskFailedError(f"Kafka refused {doing}: {reason}.{advice}")
