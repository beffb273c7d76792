"""The rights that the page names are enough for `headrace worker`, on a broker that forbids everything else."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import ResourceType

from doubles.thread_engine import ThreadEngine
from end_to_end.test_mirror_rights import Row, restricted
from headrace.broker import Broker
from headrace.config.distributed_config import DistributedConfig
from headrace.herder.answers import State
from headrace.herder.requests import CreateRequest
from headrace.plugins import checked_worker_of
from headrace.rest.peers import Peers
from headrace.testing.judge import judged
from headrace.worker import DataPlane, serving_group
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

PAGE = Path(__file__).parents[2] / "docs" / "worker-group.md"


def rows(group: str, records: str) -> list[Row]:
    """The page's table, for the worker of a group of one and its connector's topic."""
    topic = ResourceType.TOPIC
    return [
        Row("", "Read", "the group", ResourceType.GROUP, (group,)),
        Row(
            "",
            "Create, Describe, DescribeConfigs, Read, Write",
            "the config, offset, status and changes topics",
            topic,
            (f"{group}-configs", f"{group}-offsets", f"{group}-statuses"),
        ),
        Row(
            "",
            "Describe, Write",
            "the transactional ids `connect-cluster-<group.id>`, and those that begin with `<group.id>-`",
            ResourceType.TRANSACTIONAL_ID,
            (f"connect-cluster-{group}", f"{group}-"),
        ),
        Row("", "Describe, Write", "the topics of connectors", topic, (records,)),
    ]


def test_the_rights_on_the_page_are_enough(strict_broker: Broker, tmp_path: Path) -> None:
    """To start, to create a connector, and to send its records."""
    group = f"rights-{uuid4().hex[:8]}"
    records = Topics(strict_broker.bootstrap).create("records")
    table = rows(group, records)
    for row in table:
        assert f"| {row.rights} | {row.on} |" in PAGE.read_text()
    (tmp_path / "a.jsonl").write_text('{"n":1}\n{"n":2}\n')
    config = checked_worker_of(
        DistributedConfig,
        {
            "bootstrap.servers": strict_broker.bootstrap,
            "group.id": group,
            "key.converter": "string",
            "value.converter": "string",
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-statuses",
            **{
                f"{each}.storage.replication.factor": "1" for each in ("config", "offset", "status")
            },
        },
    )
    connector = {
        "connector.class": "files",
        "files.path": str(tmp_path),
        "files.format": "jsonl",
        "files.min.age.ms": "0",
        "topic": records,
    }

    with (
        restricted(strict_broker, table),
        serving_group(
            config,
            url="http://here/",
            worker_id="here",
            emit=lambda _: None,
            peers=Peers(),
            data_plane=DataPlane.of(ThreadEngine(slots=2)),
        ) as herder,
    ):
        herder.start()
        herder.ready()
        until(lambda: herder.is_open or herder.failure, seconds=60)
        assert herder.failure is None
        herder.create(CreateRequest(name="c", config=connector))
        until(lambda: herder.status("c").connector.state is State.RUNNING, seconds=60)
        until(lambda: herder.offsets("c"), seconds=60)

    assert judged(strict_broker.bootstrap, records, [b'{"n":1}', b'{"n":2}']).exactly_once
