"""What `headrace mirror status` prints."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from cli.conftest import Shell, Worker
from headrace.cli.mirror_status import SeenFlow, WorkerAnswer, status_json, status_lines
from headrace.connect.errors import ConnectError
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.flow_status import FlowStatus, PartitionStatus
from herder.stage import request
from waiting import until

NOW = 10_000.0
PARTITIONS = (
    PartitionStatus(TopicPartition("t", 10), "A.t", 8, 8, 0),
    PartitionStatus(TopicPartition("t", 9), "A.t", 9, 7, 2, 7_500),
    PartitionStatus(TopicPartition("s", 0), "A.s", 5, None, 5),
)


def seen(*partitions: PartitionStatus, problems: tuple[str, ...] = (), **errors: str) -> SeenFlow:
    """A flow with these partitions."""
    worker = WorkerAnswer(errors=errors) if errors else None
    return SeenFlow(status=FlowStatus("A->B", partitions, problems), worker=worker, now_ms=NOW)


def test_each_partition_has_a_line_and_each_flow_a_sum():
    """Sorted; what is not known is a dash."""
    assert [
        "flow  topic  partition  end  copied  lag  seconds",
        "A->B  s      0          5    -       5    -",
        "A->B  t      9          9    7       2    2.5",
        "A->B  t      10         8    8       0    0.0",
        "",
        "A->B: lag 7, 2.5 s, topics 2, partitions 3",
    ] == list(status_lines([seen(*PARTITIONS)]))


def test_what_is_wrong_stands_below():
    """Notes are a column of their own, if there are any."""
    noted = PARTITIONS[0]._replace(note="gone")
    lines = list(status_lines([seen(noted, problems=("A: away",), MirrorSourceConnector="no")]))
    assert lines[0].endswith("seconds  note")
    assert lines[1].endswith("gone")
    assert lines[-2:] == ["  A: away", "  MirrorSourceConnector has failed: no"]


def test_a_flow_of_which_nothing_is_known_has_no_lag_of_zero():
    """A dash is no number."""
    unknown = PartitionStatus(TopicPartition("t", 0), "A.t")
    assert "A->B: unknown lag, topics 1, partitions 1" == list(status_lines([seen(unknown)]))[-1]
    assert ["No flow is enabled."] == list(status_lines([]))


def test_programs_get_the_same():
    """With null for what is not known."""
    found = status_json([seen(*PARTITIONS)], NOW)
    [flow] = found["flows"]
    assert (7, 2.5, [], None) == tuple(
        flow[each] for each in ("lag", "seconds", "problems", "errors")
    )
    assert {
        "topic": "s",
        "partition": 0,
        "remote_topic": "A.s",
        "end": 5,
        "copied": None,
        "lag": 5,
        "seconds": None,
        "note": None,
    } == flow["partitions"][0]
    json.dumps(found)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose clusters are away."""
    monkeypatch.setattr("headrace.mirror.flow_status._ANSWER_SECONDS", 0.2)
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:9\nB.bootstrap.servers = 127.0.0.1:9\n"
        "A->B.enabled = true\n"
    )
    return path


def listening(file: Path, url: str) -> None:
    """Let its flow have this listener."""
    with file.open("a") as more:
        more.write(f"A->B.listeners = {url}\n")


def test_clusters_that_are_away_are_reported_with_exit_code_1(shell: Shell, file: Path):
    """For programs, too."""
    ended = shell("mirror", "status", file)
    assert (1, "") == (ended.code, ended.err)
    assert "\n  A: Kafka did not answer" in ended.out
    ended = shell("mirror", "status", "--json", file)
    assert 1 == ended.code
    assert 2 == len(ended.json["flows"][0]["problems"])


def test_an_answering_worker_says_what_has_failed(shell: Shell, file: Path, worker: Worker):
    """Where the flow has listeners."""
    worker.herder.create(request("broken"))
    worker.stage.the_run("broken").end(ConnectError("it is\nbroken"))
    until(lambda: "FAILED" in worker.stage.states("broken").values())
    listening(file, worker.url.rstrip("/"))
    ended = shell("mirror", "status", "--json", file)
    [flow] = ended.json["flows"]
    assert ["broken"] == list(flow["errors"])
    assert "broken" in flow["errors"]["broken"]


def test_a_worker_that_answers_only_its_users_is_not_taken_for_none(
    shell: Shell, file: Path, url_for_users: str
):
    """The command that asks as one of them is named."""
    listening(file, url_for_users)
    [flow] = shell("mirror", "status", "--json", file).json["flows"]
    assert flow["errors"] is None
    assert f"--url {url_for_users} --user NAME" in flow["worker_problem"]
    assert f"  {flow['worker_problem']}" in shell("mirror", "status", file).out.splitlines()


def test_what_answers_and_is_no_worker_is_reported(
    shell: Shell, file: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
):
    """Only a connection that is refused means that nothing runs."""

    def fails(*_: object) -> None:
        raise ConnectError("the disk is full")

    monkeypatch.setattr(worker.herder, "connectors", fails)
    listening(file, worker.url.rstrip("/"))
    [flow] = shell("mirror", "status", "--json", file).json["flows"]
    assert "the disk is full" in flow["worker_problem"]


def test_a_worker_that_does_not_run_is_no_problem(shell: Shell, file: Path):
    """The clusters say how far its flow is."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listening(file, f"http://127.0.0.1:{port}")
    [flow] = shell("mirror", "status", "--json", file).json["flows"]
    assert (None, None) == (flow["errors"], flow["worker_problem"])


def test_what_is_wrong_with_the_file_is_reported(shell: Shell, tmp_path: Path):
    """As by a run."""
    assert "It cannot be read" in shell.failed("mirror", "status", tmp_path / "no")
