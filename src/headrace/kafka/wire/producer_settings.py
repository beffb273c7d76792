"""librdkafka's producer settings as what a producer of our own needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.kafka.client_config import (
    DEFAULT_TRANSACTION_TIMEOUT_MS,
    PRODUCER_DEFAULTS,
    WITHOUT_END,
    Settings,
    whole_number,
)

# Enough that a leader never waits for the next request; more only delays what has to be sent again.
_MOST_IN_FLIGHT: Final = 3
_REQUEST_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerWireSettings:
    """How records are sent, always with acks=all.

    Batches are gathered into requests of up to *max_request_bytes*; a longer batch goes alone. *most_in_flight* requests
    are sent to a leader before the first is answered, which may take *request_seconds*. A batch that is not acknowledged
    within *delivery_seconds* fails. *buffer_bytes* may be handed over and not acknowledged. *transaction_ms* is
    ``transaction.timeout.ms``.
    """

    max_request_bytes: int = 1_048_576
    most_in_flight: int = _MOST_IN_FLIGHT
    request_seconds: float = _REQUEST_MS / 1000
    delivery_seconds: float = float("inf")
    buffer_bytes: int = 32 * 1024 * 1024
    transaction_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS


def producer_wire_settings(settings: Settings) -> ProducerWireSettings:
    """Translate librdkafka's *settings*, those of :func:`~headrace.kafka.client_config.producer_config`.

    ``acks`` and the bounds of numbers are checked there. ``linger.ms`` and the sizes of batches mean nothing here: what is
    handed over are batches, and they are sent at once. Raises :class:`~headrace.connect.errors.ConfigError`.
    """
    delivery_ms = whole_number(settings, "message.timeout.ms", WITHOUT_END)
    most = whole_number(settings, "max.in.flight.requests.per.connection", _MOST_IN_FLIGHT)
    return ProducerWireSettings(
        max_request_bytes=whole_number(
            settings, "message.max.bytes", PRODUCER_DEFAULTS["message.max.bytes"]
        ),
        most_in_flight=min(most, _MOST_IN_FLIGHT),
        request_seconds=whole_number(settings, "request.timeout.ms", _REQUEST_MS) / 1000,
        delivery_seconds=float("inf") if delivery_ms in (0, WITHOUT_END) else delivery_ms / 1000,
        buffer_bytes=1024
        * whole_number(
            settings,
            "queue.buffering.max.kbytes",
            PRODUCER_DEFAULTS["queue.buffering.max.kbytes"],
        ),
        transaction_ms=whole_number(
            settings, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS
        ),
    )
