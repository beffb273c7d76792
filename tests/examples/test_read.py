"""The example that prints a topic says what is wrong in a sentence."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from examples.conftest import EXAMPLES


def read(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the example."""
    command = [sys.executable, str(EXAMPLES / "read.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_without_a_topic_it_says_how_it_is_called() -> None:
    """In one line."""
    ended = read()

    assert 1 == ended.returncode
    assert "examples/read.py TOPIC" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_broker_it_says_so() -> None:
    """With the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        ended = read("orders", address)

    assert 1 == ended.returncode
    assert f"{address}: No Kafka broker answers there" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.broker
def test_a_topic_that_is_not_there_is_an_error(bootstrap: str) -> None:
    """And is not made by asking for it."""
    for _ in range(2):
        ended = read("no-such-topic", bootstrap)

        assert 1 == ended.returncode
        assert "There is no topic 'no-such-topic'" in ended.stderr
