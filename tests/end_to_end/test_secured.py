"""TLS, certificates and logins: a Java worker's properties file works."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from doubles.process_engine import ProcessEngine
from end_to_end.scene import SENDERS, Scene
from end_to_end.secured import CANARY, Secured, secured_broker
from end_to_end.test_dead_letters import tolerant, write_mixed
from headrace.config.config_files import read_worker_file
from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import FencedError
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords, Sender
from headrace.kafka.transaction_coordinator import TransactionCoordinator
from headrace.kafka.wire_sender import make_wire_sender
from headrace.testing.judge import judged

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker of the module's own."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


def _worker(secured: Secured, folder: Path) -> dict[str, str]:
    file = folder / "worker.properties"
    file.write_text(secured.worker_file())
    return read_worker_file(file)


@pytest.mark.slow
@pytest.mark.parametrize("sender", SENDERS)
def test_a_connector_runs_exactly_once(
    secured: Secured,
    tmp_path: Path,
    processes: ProcessEngine,
    caplog: pytest.LogCaptureFixture,
    *,
    sender: str,
) -> None:
    """Every client logs in: for offsets, records, dead letters; and a second run sends nothing again."""
    caplog.set_level(logging.DEBUG)
    topic = f"secured-{sender}-{os.getpid()}"
    dead = f"{topic}-dead"
    scene = Scene(secured.judges, tmp_path, topic, connector=tolerant(dead))
    scene.connector["headrace.sender"] = sender
    scene.worker = _worker(secured, tmp_path)
    good, bad = write_mixed(scene.files, lines=2_000)

    assert {} == scene.run_once(processes)
    (scene.files / "later.jsonl").write_bytes(b'{"later":1}\n')
    assert {} == scene.run_once(processes)

    assert judged(secured.judges, topic, [*good, b'{"later":1}']).exactly_once
    assert judged(secured.judges, dead, bad).exactly_once
    assert CANARY not in caplog.text


@pytest.mark.parametrize("make", [make_sender, make_wire_sender], ids=["client", "wire"])
@pytest.mark.parametrize("whose", ["producer", "worker"])
def test_fencing_logs_in_too(
    secured: Secured, tmp_path: Path, whose: str, make: Callable[..., Sender]
) -> None:
    """As the connector's producers, which have a password and keys in PEM, and as the worker: SCRAM and PKCS12."""
    config = WorkerConfig.parse(
        {"key.converter": "string", "value.converter": "string", **_worker(secured, tmp_path)}
    )
    settings = producer_config(config.client("producer"), transactional_id="fenced-one")
    sender = make(settings, owner="a test", open_seconds=30)
    sender.open()
    client = config.client("producer") if whose == "producer" else config.connection()
    coordinator = TransactionCoordinator(producer_config(client))
    try:
        sender.begin()
        sender.send(EncodedRecords(topic=f"fenced-{os.getpid()}", values=pa.array([b"1"])))
        coordinator.fence(["fenced-one"], Deadline.after(30))
        with pytest.raises(FencedError):
            sender.commit()
    finally:
        sender.close()
        coordinator.close()
