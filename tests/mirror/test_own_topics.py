"""A mirror's own topics are made in the cluster that its tasks write to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.mirror.settings import MirrorSourceConfig
from headrace.mirror.target import MirrorTarget, TargetClients
from mirror.two_clusters import PROPS, Admin, FlowCluster


@dataclass
class IdentifiedAdmin(Admin):
    """An admin client that also answers its cluster's id."""

    def cluster_id(self, deadline: Deadline) -> str:
        """As the admin client."""
        return self.cluster.cluster_id


def target_of(admin: Admin, writing: Admin) -> MirrorTarget:
    """The target by *admin*, while tasks write to where *writing* leads."""
    clients = TargetClients(*cast("tuple[Any, ...]", (admin.cluster, admin, writing)))
    return MirrorTarget(MirrorSourceConfig.parse(PROPS), clients, lambda _: {}, seconds=10)


def test_nothing_is_made_in_another_cluster():
    """Of addresses that differ, the clusters' ids say whether they lead to one."""
    named, elsewhere, same = (
        IdentifiedAdmin(FlowCluster(cluster_id=each)) for each in ("one", "two", "one")
    )

    with pytest.raises(TaskFailedError, match=r"leads to the cluster one, and this worker .* two:"):
        target_of(named, elsewhere).ensure_internal()

    assert [] == named.created
    target_of(named, same).ensure_internal()
    assert named.created
