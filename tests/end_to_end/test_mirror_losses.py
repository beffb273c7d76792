"""What a mirror does on two real brokers about what it cannot copy: told, and everything else copied."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from end_to_end.live import Life
from end_to_end.mirrored import SOURCE, Mirrored
from end_to_end.served import served
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.timeout(180)]


@pytest.fixture
def flow(bootstrap: str, broker: Broker) -> Mirrored:
    """From the shared broker to the mortal one."""
    return Mirrored(Topics(bootstrap), broker.bootstrap)


@pytest.fixture
def life(broker: Broker, tmp_path: Path) -> Life:
    """A worker of the target."""
    return Life(broker.bootstrap, tmp_path)


def states(http: httpx.Client, name: str) -> tuple[str, set[str]]:
    """Of the connector, and of its tasks."""
    found = http.get(f"/connectors/{name}/status").json()
    return found["connector"]["state"], {each["state"] for each in found["tasks"]}


def stop(http: httpx.Client, name: str) -> None:
    """Until it is."""
    http.put(f"/connectors/{name}/stop")
    until(lambda: states(http, name)[0] == "STOPPED", seconds=60)


def test_a_partition_that_lost_records_does_not_stop_the_others(flow: Mirrored, life: Life) -> None:
    """The connector is FAILED and its tasks are RUNNING, until someone has said where to go on."""
    topic = flow.topics.create("t", 2)
    for partition in (0, 1):
        flow.topics.write(topic, 10, partition)
    with served(life) as http:
        http.put(f"/connectors/{flow.name}/config", json=flow.connector())
        until(lambda: flow.is_through([topic]), seconds=60)
        stop(http, flow.name)
        flow.topics.write(topic, 10, 0)
        flow.topics.delete_records(topic, 15)
        flow.topics.write(topic, 5, 1)
        http.put(f"/connectors/{flow.name}/resume")
        until(lambda: flow.positions()[topic, 1] == 15, seconds=60)
        assert states(http, flow.name) == ("FAILED", {"RUNNING"})
        status = http.get(f"/connectors/{flow.name}/status").json()
        assert f"{topic}-0 is to be copied from offset 10 on" in status["connector"]["trace"]

        stop(http, flow.name)
        place = {"cluster": SOURCE, "topic": topic, "partition": 0}
        offsets = {"offsets": [{"partition": place, "offset": {"offset": 14}}]}
        assert http.patch(f"/connectors/{flow.name}/offsets", json=offsets).is_success
        http.put(f"/connectors/{flow.name}/resume")
        until(lambda: flow.is_through([topic]), seconds=60)
        assert states(http, flow.name) == ("RUNNING", {"RUNNING"})
