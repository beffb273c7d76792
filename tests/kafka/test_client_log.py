"""What of the client's own lines is told, and how often."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError

from headrace.kafka.client_log import ClientLog, LastClientError

TEMPLATE = "%s [%s] %s"
NAME = "headrace.kafka.client"


class Client:
    """A client that says what a test wants, when it wants."""

    def __init__(self) -> None:
        self.now = 0.0
        self._log = ClientLog(logging.getLogger(NAME), clock=lambda: self.now)

    def says(self, facility: str, text: str = "Connection refused", level: int = 40) -> None:
        """One line, as the library hands it over."""
        self._log.log(level, TEMPLATE, facility, "rdkafka#producer-1", text)


def told(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    """The client's lines of at least *level*."""
    records = [each for each in caplog.records if each.name == NAME]
    return [each.getMessage() for each in records if each.levelno >= level]


def test_an_outage_is_one_warning_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Four lines a second of each client would drown the one that says what waits."""
    caplog.set_level(logging.DEBUG, NAME)
    client = Client()
    for second in range(100):
        client.now = float(second)
        client.says("FAIL" if second % 2 else "ERROR")

    line = "[rdkafka#producer-1] Connection refused"
    counted = f"ERROR {line} (and 59 more lines about connections in between)"
    assert [f"ERROR {line}", counted] == told(caplog)
    assert 100 == len(told(caplog, logging.DEBUG))
    assert 2 == len(told(caplog, logging.WARNING))


def test_a_connection_that_no_one_used_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers close it after some minutes; and it does not use up the minute of an outage."""
    caplog.set_level(logging.DEBUG, NAME)
    client = Client()
    client.says("FAIL", "Disconnected", level=logging.INFO)
    client.says("FAIL")

    assert ["FAIL [rdkafka#producer-1] Connection refused"] == told(caplog)


def test_a_coordinator_that_is_still_loading_is_no_warning(caplog: pytest.LogCaptureFixture):
    """A healthy fresh broker answers so, and is asked again."""
    caplog.set_level(logging.DEBUG, NAME)
    Client().says("GETPID", "Coordinator load in progress", level=logging.WARNING)

    assert [] == told(caplog)
    assert 1 == len(told(caplog, logging.DEBUG))


def test_everything_else_is_reported_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is not about connections may be news each time."""
    client = Client()
    for _ in range(2):
        client.says("TXNERR", "Fatal transaction error", level=logging.ERROR)

    assert 2 == len(told(caplog, logging.ERROR))


CLOSED = "Disconnected: SSL connection closed by peer"
ADVISED = f"SSL handshake failed: {CLOSED}: connecting to a PLAINTEXT broker listener?"


@pytest.mark.parametrize("texts", [(CLOSED, ADVISED), (ADVISED, CLOSED), (CLOSED, ADVISED, CLOSED)])
def test_the_last_error_is_the_one_that_says_more(texts: Sequence[str]) -> None:
    """The client tells of one attempt twice, in either order; another cause is news."""
    last = LastClientError()
    for text in texts:
        last(KafkaError(KafkaError._SSL, f"ssl://a:1/bootstrap: {text}"))
    assert ADVISED == last.text

    last(KafkaError(KafkaError._RESOLVE, "ssl://a:1/bootstrap: Failed to resolve 'a:1'"))
    assert "Failed to resolve 'a:1'" == last.text
