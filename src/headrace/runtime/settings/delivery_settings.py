"""The settings that say how records and offsets are committed together (KIP-618)."""

from __future__ import annotations

from headrace.connect.config import Config, setting
from headrace.connect.setting_type import SettingType
from headrace.runtime.settings.error_settings import topic_name_problem
from headrace.slot.work import BoundaryKind

_REQUIRED = "required"


class DeliverySettings(Config):
    """Transactions, and where source offsets are kept; part of every connector's configuration."""

    exactly_once_support: str = setting(
        default="requested",
        one_of=("required", "requested"),
        ignore_case=True,
        doc="Whether the connector may run without exactly-once (requested) or not (required).",
        group="Exactly Once Support",
        order=2,
        width="SHORT",
        display_name="Exactly once support",
    )
    transaction_boundary: str | None = setting(
        default=None,
        one_of=("poll", "interval", "connector"),
        ignore_case=True,
        doc="Where transactions end: after each poll, after an interval, or where the connector "
        "says. Default: interval.",
        group="Exactly Once Support",
        order=3,
        width="SHORT",
        display_name="Transaction Boundary",
    )
    transaction_boundary_interval_ms: int | None = setting(
        "transaction.boundary.interval.ms",
        default=None,
        kind=SettingType.LONG,
        importance="low",
        at_least=0,
        doc="How long a transaction is, with the boundary interval. Default: one second; if "
        "transaction.boundary is set, the worker's offset.flush.interval.ms.",
        group="Exactly Once Support",
        order=4,
        width="SHORT",
        display_name="Transaction boundary interval",
    )
    offsets_storage_topic: str | None = setting(
        default=None,
        importance="low",
        non_empty=True,
        valid=topic_name_problem,
        doc="A topic of the connector's own for its source offsets, in the cluster that it writes to; made when it is "
        "missing. Without it, the offsets are with the worker's.",
        group="offsets.topic",
        order=1,
        width="LONG",
        display_name="Offsets topic",
    )

    @property
    def boundary(self) -> BoundaryKind:
        """Where transactions end."""
        return BoundaryKind((self.transaction_boundary or BoundaryKind.INTERVAL).lower())

    @property
    def requires_exactly_once(self) -> bool:
        """Whether the connector must not run without exactly-once."""
        return self.exactly_once_support.lower() == _REQUIRED
