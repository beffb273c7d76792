"""What a producer would refuse, by the names that the user gave."""

from __future__ import annotations

from headrace.kafka.client_config import producer_config
from headrace.kafka.refused_settings import producer_refusals


def _keys(**settings: str) -> list[str]:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    config = producer_config(given, transactional_id="one per task")
    return [key for key, _ in producer_refusals(config, given)]


def test_all_wrong_values_are_found() -> None:
    """The client names the first only; a rule across settings is no problem of its own then."""
    found = _keys(linger_ms="abc", compression_type="lzo", delivery_timeout_ms="5")

    assert ["compression.type", "linger.ms"] == sorted(found)


def test_settings_are_called_as_they_were_given() -> None:
    """Java's name, or the client's own."""
    assert ["compression.gzip.level"] == _keys(compression_gzip_level="77")
    assert ["queue.buffering.max.ms"] == _keys(queue_buffering_max_ms="x")
    assert ["transaction.timeout.ms"] == _keys(transaction_timeout_ms="5")


def test_what_is_right_is_let_in() -> None:
    """Nothing of ours is refused."""
    assert [] == _keys()
    assert [] == _keys(linger_ms="5", compression_type="zstd", max_request_size="2000000")
