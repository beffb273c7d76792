"""What is done next about a connector, for everything that may be wanted and seen."""

from __future__ import annotations

import pytest

from headrace.herder.answers import TargetState
from headrace.herder.lifecycle import (
    Act,
    Elsewhere,
    Lifecycle,
    Phase,
    Target,
    done,
    ended,
    has_run,
    next_act,
    renewed,
    wanted,
)

ELSEWHERE = Elsewhere.ELSEWHERE
RUNNING, PAUSED, STOPPED = TargetState.RUNNING, TargetState.PAUSED, TargetState.STOPPED

# Of a connector whose last run had the revision that is wanted.
TABLE = {
    (Phase.NOTHING, RUNNING): Act.START,
    (Phase.NOTHING, PAUSED): Act.SHOW_PAUSED,
    (Phase.NOTHING, STOPPED): Act.SHOW_STOPPED,
    (Phase.NOTHING, ELSEWHERE): Act.GIVE_UP,
    (Phase.NOTHING, None): Act.FORGET,
    (Phase.RUNNING, RUNNING): Act.NOTHING,
    (Phase.RUNNING, PAUSED): Act.ASK_TO_STOP,
    (Phase.RUNNING, STOPPED): Act.ASK_TO_STOP,
    (Phase.RUNNING, ELSEWHERE): Act.ASK_TO_STOP,
    (Phase.RUNNING, None): Act.ASK_TO_STOP,
    (Phase.ENDING, RUNNING): Act.NOTHING,
    (Phase.ENDING, PAUSED): Act.NOTHING,
    (Phase.ENDING, STOPPED): Act.NOTHING,
    (Phase.ENDING, ELSEWHERE): Act.NOTHING,
    (Phase.ENDING, None): Act.NOTHING,
    (Phase.FAILED, RUNNING): Act.NOTHING,
    (Phase.FAILED, PAUSED): Act.NOTHING,
    (Phase.FAILED, STOPPED): Act.SHOW_STOPPED,
    (Phase.FAILED, ELSEWHERE): Act.GIVE_UP,
    (Phase.FAILED, None): Act.FORGET,
    (Phase.COMPLETED, RUNNING): Act.NOTHING,
    (Phase.COMPLETED, PAUSED): Act.SHOW_PAUSED,
    (Phase.COMPLETED, STOPPED): Act.SHOW_STOPPED,
    (Phase.COMPLETED, ELSEWHERE): Act.GIVE_UP,
    (Phase.COMPLETED, None): Act.FORGET,
    (Phase.PAUSED, RUNNING): Act.START,
    (Phase.PAUSED, PAUSED): Act.NOTHING,
    (Phase.PAUSED, STOPPED): Act.SHOW_STOPPED,
    (Phase.PAUSED, ELSEWHERE): Act.GIVE_UP,
    (Phase.PAUSED, None): Act.FORGET,
    (Phase.STOPPED, RUNNING): Act.START,
    (Phase.STOPPED, PAUSED): Act.SHOW_PAUSED,
    (Phase.STOPPED, STOPPED): Act.NOTHING,
    (Phase.STOPPED, ELSEWHERE): Act.GIVE_UP,
    (Phase.STOPPED, None): Act.FORGET,
}
# Where a new configuration, or a restart, makes a difference.
ANEW = {
    (Phase.RUNNING, RUNNING): Act.ASK_TO_STOP,
    (Phase.FAILED, RUNNING): Act.START,
    (Phase.FAILED, PAUSED): Act.SHOW_PAUSED,
    (Phase.COMPLETED, RUNNING): Act.START,
}


@pytest.mark.parametrize(("phase", "target"), TABLE)
def test_each_phase_has_one_way_to_each_target(phase: Phase, target: Target) -> None:
    """As the tables say, with the same revision and with a newer one."""
    lifecycle = Lifecycle(target=target, phase=phase, revision=3, running=3)

    assert TABLE[phase, target] is next_act(lifecycle)
    assert ANEW.get((phase, target), TABLE[phase, target]) is next_act(renewed(lifecycle))


@pytest.mark.parametrize(("phase", "target"), TABLE)
def test_nothing_starts_before_it_can(phase: Phase, target: Target) -> None:
    """Everything else goes on."""
    lifecycle = Lifecycle(target=target, phase=phase, revision=3, running=3)
    act = TABLE[phase, target]

    assert (Act.NOTHING if act is Act.START else act) is next_act(lifecycle, can_start=False)


@pytest.mark.parametrize(("phase", "target"), TABLE)
def test_whatever_is_wanted_is_reached(phase: Phase, target: Target) -> None:
    """In a few acts, if runs end when they are asked to, from wherever it begins."""
    lifecycle = renewed(Lifecycle(target=target, phase=phase, revision=3, running=3))
    for _ in range(4):
        if lifecycle.phase is Phase.ENDING:
            lifecycle = ended(lifecycle, failed=True)
        lifecycle = done(lifecycle, next_act(lifecycle))

    reached: dict[Target, Phase] = {
        RUNNING: Phase.RUNNING,
        PAUSED: Phase.PAUSED,
        STOPPED: Phase.STOPPED,
    }
    assert (
        reached.get(target, Phase.GIVEN_UP if target is ELSEWHERE else Phase.GONE)
        is lifecycle.phase
    )
    assert target is not RUNNING or lifecycle.running == lifecycle.revision


def test_a_failure_counts_unless_the_run_was_asked_to_end() -> None:
    """One that ends is followed by what is wanted, however it ended."""
    running = done(Lifecycle(target=RUNNING), Act.START)

    assert Phase.FAILED is ended(running, failed=True).phase
    assert Phase.NOTHING is ended(done(running, Act.ASK_TO_STOP), failed=True).phase


def test_a_run_that_has_read_everything_is_not_followed_by_another() -> None:
    """It has ended by itself."""
    running = done(Lifecycle(target=RUNNING), Act.START)

    assert Phase.COMPLETED is ended(running, failed=False).phase
    assert Act.NOTHING is next_act(ended(running, failed=False))


def test_a_run_that_is_wanted_again_while_it_ends_is_followed_by_another() -> None:
    """Paused and resumed within a moment."""
    ending = done(wanted(done(Lifecycle(target=RUNNING), Act.START), PAUSED), Act.ASK_TO_STOP)
    again = wanted(ending, RUNNING)

    assert has_run(again)
    assert Act.NOTHING is next_act(again)
    assert Act.START is next_act(ended(again, failed=False))
