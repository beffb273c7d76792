"""What brokers answer to requests about ACLs; that they are read and created is tested with the mirror."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kafka.protocol.admin.acl import CreateAclsResponse, DescribeAclsResponse

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.acls import Acl, create_acls, topic_acls

ACL = Acl("TOPIC", "t", "LITERAL", "User:x", "*", "READ", "ALLOW")
FORBIDDEN, NO_AUTHORIZER, TIMED_OUT = 31, 54, 7


class Answering:
    """A cluster that answers each request with *error*, and says nothing else."""

    def __init__(self, error: int) -> None:
        self._error = error

    def ask_any(self, request: Any, doing: str, deadline: Deadline, *, versions: Any) -> Any:  # noqa: ANN401 (as the library's)
        """As the wire's cluster."""
        creations = getattr(request, "creations", None)
        if creations is None:
            return DescribeAclsResponse(
                error_code=self._error, error_message="Refused.", resources=[]
            )
        result = CreateAclsResponse.AclCreationResult
        return CreateAclsResponse(
            results=[result(error_code=self._error, error_message=None) for _ in creations]
        )


def cluster(error: int) -> Any:  # noqa: ANN401 (in place of the wire's)
    """One that answers with *error*."""
    return cast("Any", Answering(error))


def test_no_authorizer_is_not_the_same_as_no_acls():
    """So that nobody takes the one for the other."""
    assert topic_acls(cluster(NO_AUTHORIZER), Deadline.after(1)) is None
    assert topic_acls(cluster(0), Deadline.after(1)) == ()


def test_a_missing_right_is_named():
    """Seeing and creating take different ones."""
    with pytest.raises(TaskFailedError, match="Grant this client Describe on the cluster"):
        topic_acls(cluster(FORBIDDEN), Deadline.after(1))
    with pytest.raises(
        TaskFailedError,
        match=r"ALLOW READ on 't' for User:x: CLUSTER_AUTHORIZATION_FAILED\. Grant this client Alter",
    ):
        create_acls(cluster(FORBIDDEN), [ACL], Deadline.after(1))


def test_what_may_pass_is_not_a_refusal():
    """It is asked again later."""
    with pytest.raises(RetriableError, match=r"Refused \(REQUEST_TIMED_OUT\)"):
        topic_acls(cluster(TIMED_OUT), Deadline.after(1))
