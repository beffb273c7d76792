"""What settings of Kafka's Java consumer say about reading: isolation, how much a fetch brings, checksums. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.connect.errors import ConfigError
from headrace.connect.setting import SettingType, parsed
from headrace.kafka.wire.cluster import IsolationLevel
from headrace.kafka.wire.fetcher import FetchSettings

ISOLATION_LEVELS: Final[Mapping[str, IsolationLevel]] = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}
"""The values of ``isolation.level``; unlike the Java consumer, headrace reads committed records by default."""

# More than with the Java consumer, for whole batches.
_USUAL: Final = FetchSettings()


def fetch_settings(
    consumer: Mapping[str, str],
    isolation: IsolationLevel,
    *,
    usual: FetchSettings = _USUAL,
) -> FetchSettings:
    """How much a fetch brings; what *consumer* does not say is as in *usual*.

    Raises :class:`~headrace.connect.errors.ConfigError` with the consumer's key for what is not a positive whole number.
    """
    return FetchSettings(
        isolation=isolation,
        max_bytes=_number(consumer, "fetch.max.bytes", usual.max_bytes),
        max_partition_bytes=_number(
            consumer, "max.partition.fetch.bytes", usual.max_partition_bytes
        ),
        min_bytes=_number(consumer, "fetch.min.bytes", usual.min_bytes),
        max_wait_ms=_number(consumer, "fetch.max.wait.ms", usual.max_wait_ms),
    )


def checks_crcs(consumer: Mapping[str, str]) -> bool:
    """Whether the checksum of each batch is compared: ``check.crcs``."""
    return consumer.get("check.crcs", "true").strip().lower() != "false"


def _number(consumer: Mapping[str, str], key: str, default: int) -> int:
    try:
        found = parsed(consumer[key], SettingType.INT) if key in consumer else default
    except ValueError:
        found = 0
    if not isinstance(found, int) or found <= 0:
        raise ConfigError([(key, f"{consumer[key]!r} is not a positive whole number.")])
    return found
