"""One metric: its name, what it says, and how its value is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Kind(Enum):
    """How a value is to be read."""

    COUNTER = "counter"
    GAUGE = "gauge"
    WORD = "word"
    """Always 1; the word itself is a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Generic[_T]):
    """Kafka Connect's *attribute* of a *group*; *value* finds it, ``None`` where there is none. Pure."""

    group: str
    attribute: str
    kind: Kind
    doc: str
    value: Callable[[_T], float | str | None]

    @property
    def name(self) -> str:
        """Its name for Prometheus."""
        return f"kafka_connect_{self.group}_{self.label}".replace("-", "_")

    @property
    def label(self) -> str:
        """The label of its word, where it is one."""
        return self.attribute.replace("-", "_")
