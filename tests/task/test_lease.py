"""The slot's right to write, and how it is lost."""

from __future__ import annotations

import time
from typing import Any, Self

import pytest

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.task.channel import Lease
from headrace.task.slot_report import Progress
from waiting import until


class Driver:
    """Answers beats as the test says; stands where a ``ChannelClient`` stands."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = {"valid": True, "end": None}
        self.heard: list[dict[str, Any]] = []

    def ask(self, verb: str, **words: Any) -> dict[str, Any]:  # noqa: ANN401
        """The answer, or none."""
        assert "beat" == verb
        if self.answer is None:
            raise RetriableError("no one there")
        self.heard.append(words)
        return self.answer

    def close(self) -> None:
        """Nothing to close."""


class Held:
    """A lease whose clock the test moves."""

    def __init__(self, lease_seconds: float = 10.0) -> None:
        self.now = 0.0
        self.driver = Driver()
        self.progress = Progress()
        self.lease = Lease(
            self.driver,  # type: ignore[arg-type]
            self.progress,
            lease_seconds=lease_seconds,
            beat_seconds=0.005,
            clock=lambda: self.now,
        )

    def __enter__(self) -> Self:
        self.lease.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lease.close()


def test_beats_tell_progress() -> None:
    """The driver hears what was done so far."""
    with Held() as held:
        held.progress.records = 7
        until(lambda: held.driver.heard and held.driver.heard[-1]["progress"]["records"] == 7)

    assert held.driver.heard


def test_a_slot_that_is_answered_may_go_on() -> None:
    """Time passes, and the lease is renewed."""
    with Held() as held:
        for moment in range(0, 60, 5):
            held.now = float(moment)
            seen = len(held.driver.heard)
            until(lambda seen=seen: len(held.driver.heard) > seen + 1)
            held.lease.check()

        assert not held.lease.should_end()


def test_a_driver_that_is_silent_for_the_lease_time_ends_the_slot() -> None:
    """Whatever it still has in its transaction must not be committed."""
    with Held() as held:
        held.driver.answer = None
        held.now = 10.5

        with pytest.raises(StaleTokenError, match="not answered for 1"):
            held.lease.check()


def test_a_process_that_was_held_finds_its_lease_lost_the_moment_it_wakes() -> None:
    """Even before its heartbeat has had a chance to ask."""
    held = Held()
    held.now = 3600.0

    with pytest.raises(StaleTokenError):
        held.lease.check()


def test_an_answer_proves_nothing_newer_than_its_question() -> None:
    """A beat that was under way while the process was held does not renew the lease when it comes back."""
    held = Held(lease_seconds=10.0)
    lost_before_each_beat: list[bool] = []
    ask = held.driver.ask

    def answer_late(verb: str, **words: Any) -> dict[str, Any]:  # noqa: ANN401
        lost_before_each_beat.append(held.lease.should_end())
        held.now += 11.0
        return ask(verb, **words)

    held.driver.ask = answer_late  # type: ignore[method-assign]
    with held:
        until(lambda: len(lost_before_each_beat) > 2)

    assert [False, True, True] == lost_before_each_beat[:3]


def test_a_withdrawn_token_ends_the_slot_for_good() -> None:
    """A later answer cannot bring it back."""
    with Held() as held:
        held.driver.answer = {"valid": False}
        until(held.lease.should_end)
        held.driver.answer = {"valid": True, "end": None}
        seen = len(held.driver.heard)
        until(lambda: len(held.driver.heard) > seen + 1)

        with pytest.raises(StaleTokenError, match="to another"):
            held.lease.check()


def test_a_slot_that_is_asked_to_end_may_still_commit() -> None:
    """It is given the reason, and its lease holds."""
    with Held() as held:
        held.driver.answer = {"valid": True, "end": "stop"}
        until(held.lease.should_end)

        held.lease.check()
        assert "stop" == held.lease.asked_to_end


def test_waiting_ends_early_when_the_slot_should_end() -> None:
    """A pause between polls does not hold up a stop."""
    with Held() as held:
        held.driver.answer = {"valid": True, "end": "stop"}

        held.lease.wait(60.0)

        assert held.lease.should_end()


def test_a_pause_holds_also_when_the_slot_should_end() -> None:
    """For what still has to be waited for then."""
    with Held() as held:
        held.driver.answer = {"valid": True, "end": "stop"}
        until(held.lease.should_end)
        begun = time.monotonic()

        held.lease.pause(0.2)

        assert time.monotonic() - begun >= 0.2
