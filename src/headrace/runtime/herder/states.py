"""The states of connectors and tasks, with Kafka Connect's names."""

from __future__ import annotations

from enum import StrEnum


class TargetState(StrEnum):
    """What a connector is wanted to be: kept with its configuration, changed by pause, resume and stop."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(StrEnum):
    """What a connector or a task is seen to be; a task is never STOPPED."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
