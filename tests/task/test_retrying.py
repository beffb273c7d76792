"""How long, and how often, what may pass is tried again (KIP-298)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from headrace.connect.errors import RecordError, RetriableError
from headrace.task.connector_spec import ErrorPolicy
from headrace.task.error_handling import RetryWithBackoff
from headrace.task.frames import Place
from headrace.task.slot_report import Progress


@dataclass
class Trial:
    """Tries something that fails *failures* times, on a clock that only waiting moves."""

    policy: ErrorPolicy
    failures: int
    ends_after: float = float("inf")
    error: Exception = field(default_factory=lambda: RetriableError("Not now."))
    waits: list[float] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    attempts: int = 0

    def attempt(self) -> str:
        """Fail, or not any more."""
        self.attempts += 1
        if self.attempts <= self.failures:
            raise self.error
        return "done"

    def wait(self, seconds: float, waits_from: Place | None) -> None:
        """Be older by so much."""
        self.waits.append(seconds)
        self.reasons.append(self.progress.waiting_for)

    def run(self) -> str:
        """All of it."""
        retrying = RetryWithBackoff(
            self.policy,
            self.progress,
            wait=self.wait,
            ending=lambda: sum(self.waits) >= self.ends_after,
            clock=lambda: sum(self.waits),
        )
        return retrying.call(self.attempt, lambda: None)


def policy(timeout: float | None, *, most_delay: float = 60.0) -> ErrorPolicy:
    """What is set."""
    return ErrorPolicy(retry_seconds=timeout, retry_delay_seconds=most_delay)


def test_without_a_timeout_it_is_tried_once() -> None:
    """The error passes as it is, so that the work is planned again."""
    trial = Trial(policy(0), failures=1)

    with pytest.raises(RetriableError):
        trial.run()

    assert (1, []) == (trial.attempts, trial.waits)


def test_waits_double() -> None:
    """From 0.3 seconds on, as in Kafka Connect."""
    trial = Trial(policy(None), failures=4)

    assert "done" == trial.run()

    assert [0.3, 0.6, 1.2, 2.4] == trial.waits


def test_waits_beyond_the_longest_are_anything_below_it() -> None:
    """So that tasks that failed together do not come back together."""
    trial = Trial(policy(None, most_delay=1.0), failures=50)

    trial.run()

    assert [0.3, 0.6] == trial.waits[:2]
    assert all(0 <= each <= 1.0 for each in trial.waits[2:])
    assert len(set(trial.waits[2:])) > 1


def test_no_wait_goes_beyond_the_timeout() -> None:
    """The last try is at its end; then it is about the record, and tolerance decides."""
    trial = Trial(policy(2.0), failures=9)

    with pytest.raises(RecordError, match=r"Not now. Retries ended after 2 s") as caught:
        trial.run()

    assert pytest.approx([0.3, 0.6, 1.1]) == trial.waits
    assert 0 == caught.value.row


def test_a_slot_that_should_end_does_not_wait() -> None:
    """Its work is planned again: no one has tried long enough."""
    trial = Trial(policy(None), failures=99, ends_after=0.5)

    with pytest.raises(RetriableError):
        trial.run()

    assert [0.3, 0.6] == trial.waits


@pytest.mark.parametrize("error", [RecordError("bad"), ValueError("wrong")])
def test_only_what_may_pass_is_tried_again(error: Exception) -> None:
    """Anything else would be the same once more."""
    trial = Trial(policy(None), failures=1, error=error)

    with pytest.raises(type(error)):
        trial.run()

    assert (1, []) == (trial.attempts, trial.waits)


def test_tries_are_counted_and_the_wait_is_told_while_it_lasts() -> None:
    """Its reason is there for the log until something has come of it."""
    trial = Trial(policy(None), failures=2)

    trial.run()

    assert ["Not now.", "Not now."] == trial.reasons
    assert (2, None) == (trial.progress.retries, trial.progress.waiting_for)
