"""A producer of records that may be lost: nobody waits for them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Delivered

from headrace.kafka.client_config import ClientConfig
from headrace.kafka.client_log import CLIENT_LOG
from headrace.kafka.errors import kafka_error
from headrace.kafka.refused_settings import refused_settings

_log = logging.getLogger(__name__)


class LooseProducer:
    """Sends records in their order, and never waits for a broker. One thread owns it.

    *what* names the records in the log, where each kind of failure is told once. Raises
    :class:`~headrace.connect.errors.ConfigError` for settings that the client refuses.
    """

    def __init__(self, config: ClientConfig, *, what: str) -> None:
        self._what = what
        self._told = set[str]()
        settings: dict[str, object] = {
            **config.settings,
            "delivery.report.only.error": True,
            "on_delivery": self._delivered,
            "logger": CLIENT_LOG,
        }
        try:
            self._client = Producer(settings)
        except KafkaException as error:
            raise refused_settings(error, config.settings) from error

    def send(self, topic: str, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Hand over *records*, keys and values; those for which the queue has no room are lost."""
        self._client.poll(0)
        for key, value in records:
            try:
                self._client.produce(topic, value, key, partition)
            except BufferError:
                self._tell("The queue is full.")
                return
            except KafkaException as error:
                self._tell(kafka_error(error).str())
                return

    def close(self, seconds: float) -> None:
        """Wait up to *seconds* for what is in the queue; the rest is lost."""
        try:
            left = self._client.flush(seconds)
        except KafkaException as error:
            self._tell(kafka_error(error).str())
            left = 0
        if left:
            self._tell(f"{left} were not sent within {seconds:g} s.")
        self._client.purge()
        del self._client

    def _delivered(self, error: KafkaError | None, _message: Delivered) -> None:
        if error is not None:
            self._tell(error.str())

    def _tell(self, reason: str) -> None:
        if reason in self._told:
            return
        self._told.add(reason)
        _log.warning("Some %s were not written: %s", self._what, reason)
