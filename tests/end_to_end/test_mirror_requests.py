"""Requests about a running mirror over REST: its positions, and where copying begins, goes on and begins again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from end_to_end.live import Life
from end_to_end.mirrored import SECONDS, SOURCE, Mirrored, committed
from end_to_end.served import served
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(300)]


class Operator:
    """Asks for one mirror of one partition of *topic*."""

    def __init__(self, http: httpx.Client, flow: Mirrored, topic: str) -> None:
        self._http = http
        self._flow = flow
        self._path = f"/connectors/{flow.name}"
        self._partition = {"cluster": SOURCE, "partition": 0, "topic": topic}

    def create(self, *, last_copied: int) -> None:
        """Begin behind *last_copied*; what was never copied is no reason to fail (KIP-995)."""
        more = {"mirror.on.expired": "continue", "offset-syncs.topic.replication.factor": "1"}
        config = self._flow.connector(more)
        body = {
            "name": config.pop("name"),
            "config": config,
            "initial_offsets": self._offsets(last_copied),
        }
        answer = self._http.post("/connectors", json=body)
        assert 200 == answer.status_code, answer.text

    def last_copied(self) -> int | None:
        """As GET answers; the flow's own entry is not a partition's."""
        answer = self._http.get(f"{self._path}/offsets")
        assert 200 == answer.status_code, answer.text
        found = (each for each in answer.json()["offsets"] if self._partition == each["partition"])
        return next((each["offset"]["offset"] for each in found), None)

    def set(self, last_copied: int) -> httpx.Response:
        """The answer to PATCH."""
        return self._http.patch(
            f"{self._path}/offsets", json={"offsets": self._offsets(last_copied)}
        )

    def reset(self) -> httpx.Response:
        """The answer to DELETE."""
        return self._http.delete(f"{self._path}/offsets")

    def stop(self) -> None:
        """Return when it is."""
        self._put("stop", "STOPPED")

    def resume(self) -> None:
        """Return when it runs."""
        self._put("resume", "RUNNING")

    def is_at(self, last_copied: int) -> bool:
        """Whether GET says so."""
        return last_copied == self.last_copied()

    def _put(self, request: str, state: str) -> None:
        answer = self._http.put(f"{self._path}/{request}")
        assert answer.status_code in {202, 204}, answer.text

        def has_come() -> bool:
            status = self._http.get(f"{self._path}/status").json()
            assert "FAILED" != status["connector"]["state"], status
            return status["connector"]["state"] == state

        until(has_come, seconds=SECONDS)

    def _offsets(self, last_copied: int) -> list[dict[str, Any]]:
        return [{"partition": self._partition, "offset": {"offset": last_copied}}]


@pytest.fixture
def flow(bootstrap: str, broker: Broker) -> Mirrored:
    """From the shared broker to the mortal one."""
    return Mirrored(Topics(bootstrap), broker.bootstrap)


def copies(flow: Mirrored, topic: str) -> list[str]:
    """The values at the target."""
    copy = f"{SOURCE}.{topic}"
    return [(each.value or b"").decode() for each in committed(flow.target, [copy])[copy][0]]


def test_positions_of_a_running_mirror_are_given_shown_set_and_reset(
    flow: Mirrored, broker: Broker, tmp_path: Path
) -> None:
    """Copying goes on from exactly there; a position is only changed while the mirror is stopped."""
    topic = flow.topics.create("t")
    values = flow.topics.write(topic, 10)
    with served(Life(broker.bootstrap, tmp_path)) as http:
        operator = Operator(http, flow, topic)
        operator.create(last_copied=4)
        until(lambda: operator.is_at(9), seconds=SECONDS)
        copied = values[5:]
        assert copied == copies(flow, topic)
        assert 400 == operator.set(7).status_code

        operator.stop()
        assert "the source's log ends at 10" in operator.set(10).text
        assert 200 == operator.set(7).status_code
        assert {(topic, 0): 8} == flow.positions()
        operator.resume()
        until(lambda: operator.is_at(9), seconds=SECONDS)
        copied += values[8:]
        assert copied == copies(flow, topic)

        operator.stop()
        assert 200 == operator.reset().status_code
        assert operator.last_copied() is None
        assert {} == flow.positions()
        operator.resume()
        until(lambda: operator.is_at(9), seconds=SECONDS)
        copied += values
        assert copied == copies(flow, topic)

        more = flow.topics.write(topic, 3)
        until(lambda: operator.is_at(12), seconds=SECONDS)
        operator.stop()
        assert copied + more == copies(flow, topic)
