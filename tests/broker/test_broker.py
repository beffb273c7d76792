"""A real broker, started, killed and started again."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headrace.broker import Broker
from headrace.broker import broker as ports
from headrace.connect.errors import ConnectError
from waiting import until

pytestmark = pytest.mark.broker


def test_answers(broker: Broker):
    """A started broker answers on its port, and starting it again changes nothing."""
    before = broker.state

    broker.start()

    assert before == broker.state
    until(lambda: ports.answers(broker.port))


@pytest.mark.kill
def test_killed_and_started_again(broker: Broker):
    """After SIGKILL it comes back on the same port with a new process."""
    port, pid = broker.port, broker.pid

    broker.kill()
    was_running = broker.is_running
    broker.start()

    assert not was_running
    assert port == broker.port
    assert pid != broker.pid
    until(lambda: ports.answers(port))


def test_paused(broker: Broker):
    """A paused broker answers nothing until it is resumed."""
    broker.pause()
    try:
        # It may still answer in the moment before the signal reaches all its threads.
        until(lambda: not ports.answers(broker.port))
        answered_meanwhile = ports.answers(broker.port)
    finally:
        broker.resume()

    until(lambda: ports.answers(broker.port))
    assert not answered_meanwhile


def test_another_object_of_the_folder(broker: Broker, tmp_path: Path):
    """Whoever names the folder finds the broker; who names another one does not."""
    folder = broker.log_file.parent.parent

    assert broker.state == Broker(folder).state
    assert not Broker(tmp_path).is_running


def test_fresh_while_running(broker: Broker):
    """A running broker is not wiped under its own feet."""
    with pytest.raises(ConnectError, match="stop it before"):
        broker.start(fresh=True)


def test_port_in_use(tmp_path: Path):
    """A port that another program has is reported, and nothing is started."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(ConnectError, match=f"Port {port} is in use"):
            Broker(tmp_path, port=port).start()


def test_failing_start_shows_the_log(tmp_path: Path):
    """A setting that Kafka refuses is shown in Kafka's own words, and nothing is left running."""
    refused = Broker(tmp_path, properties={"num.network.threads": "0"})

    with pytest.raises(ConnectError, match=r"num\.network\.threads"):
        refused.start()

    assert not refused.is_running


def test_foreign_folder_is_not_wiped(tmp_path: Path):
    """A folder that no broker was started in is not emptied."""
    (tmp_path / "kafka").mkdir()

    with pytest.raises(ConnectError, match="nothing in it is removed"):
        Broker(tmp_path).start(fresh=True)

    assert (tmp_path / "kafka").is_dir()
