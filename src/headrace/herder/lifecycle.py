"""The next action for a connector, from its target state and its observed state; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, TypeAlias

from headrace.herder.answers import TargetState


class Phase(Enum):
    """The observed state of a connector."""

    NOTHING = auto()
    RUNNING = auto()
    ENDING = auto()
    """Its run was asked to stop and has not ended yet."""
    FAILED = auto()
    COMPLETED = auto()
    """Its run has ended by itself: everything has been read."""
    PAUSED = auto()
    STOPPED = auto()
    GONE = auto()
    GIVEN_UP = auto()
    """Another worker may run it."""


class Elsewhere(Enum):
    """The target of a connector that this worker is no longer to run."""

    ELSEWHERE = auto()


Target: TypeAlias = TargetState | Elsewhere | None
"""What a connector is to become here; ``None`` when it is deleted."""


class Act(Enum):
    """The next action."""

    NOTHING = auto()
    START = auto()
    ASK_TO_STOP = auto()
    SHOW_PAUSED = auto()
    SHOW_STOPPED = auto()
    FORGET = auto()
    GIVE_UP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """One connector: its *target* and its observed *phase*.

    *revision* grows with each configuration and each restart; *running* is the revision of the last run.
    """

    target: Target
    revision: int = 1
    phase: Phase = Phase.NOTHING
    running: int = 0


_SHOWN: Final = {
    Phase.PAUSED: TargetState.PAUSED,
    Phase.STOPPED: TargetState.STOPPED,
    Phase.GONE: None,
    Phase.GIVEN_UP: Elsewhere.ELSEWHERE,
}
_TOWARDS: Final = {
    TargetState.RUNNING: Act.START,
    TargetState.PAUSED: Act.SHOW_PAUSED,
    TargetState.STOPPED: Act.SHOW_STOPPED,
    None: Act.FORGET,
    Elsewhere.ELSEWHERE: Act.GIVE_UP,
}
_AFTER: Final = {
    Act.ASK_TO_STOP: Phase.ENDING,
    Act.SHOW_PAUSED: Phase.PAUSED,
    Act.SHOW_STOPPED: Phase.STOPPED,
    Act.FORGET: Phase.GONE,
    Act.GIVE_UP: Phase.GIVEN_UP,
}


def wanted(lifecycle: Lifecycle, target: Target) -> Lifecycle:
    """The target has changed: resume, pause, stop, delete, create, or leave it to another worker."""
    return replace(lifecycle, target=target)


def renewed(lifecycle: Lifecycle) -> Lifecycle:
    """A new configuration, or a restart: a current or failed run is followed by a new one."""
    return replace(lifecycle, revision=lifecycle.revision + 1)


def ended(lifecycle: Lifecycle, *, failed: bool) -> Lifecycle:
    """The run has ended. A run that was asked to stop has not failed, even if it ended with an error."""
    if lifecycle.phase is not Phase.RUNNING:
        return replace(lifecycle, phase=Phase.NOTHING)
    return replace(lifecycle, phase=Phase.FAILED if failed else Phase.COMPLETED)


def next_act(lifecycle: Lifecycle, *, can_start: bool = True) -> Act:
    """The next action; *can_start* is false until Kafka has been reached."""
    if lifecycle.phase is Phase.RUNNING:
        return Act.NOTHING if _is_as_wanted(lifecycle) else Act.ASK_TO_STOP
    if lifecycle.phase is Phase.ENDING or _is_settled(lifecycle):
        return Act.NOTHING
    act = _TOWARDS[lifecycle.target]
    return Act.NOTHING if act is Act.START and not can_start else act


def done(lifecycle: Lifecycle, act: Act) -> Lifecycle:
    """*act* has been done."""
    if act is Act.START:
        return replace(lifecycle, phase=Phase.RUNNING, running=lifecycle.revision)
    return replace(lifecycle, phase=_AFTER.get(act, lifecycle.phase))


def has_run(lifecycle: Lifecycle) -> bool:
    """Whether there is a run that has not ended."""
    return lifecycle.phase in (Phase.RUNNING, Phase.ENDING)


def _is_as_wanted(lifecycle: Lifecycle) -> bool:
    return lifecycle.target is TargetState.RUNNING and lifecycle.running == lifecycle.revision


def _is_settled(lifecycle: Lifecycle) -> bool:
    if lifecycle.phase is Phase.COMPLETED:
        return _is_as_wanted(lifecycle)
    if lifecycle.phase is Phase.FAILED:
        # As in Kafka Connect: pause and resume leave a failed connector failed, until it is restarted.
        is_same = lifecycle.running == lifecycle.revision
        return is_same and lifecycle.target in (TargetState.RUNNING, TargetState.PAUSED)
    return lifecycle.phase in _SHOWN and _SHOWN[lifecycle.phase] is lifecycle.target
