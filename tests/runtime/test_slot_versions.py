"""Which machines have another version than the worker."""

from __future__ import annotations

from headrace.runtime.slot_versions import SlotVersions


class Clock:
    """Set by a test."""

    now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_a_refusal_names_both_versions_the_machine_and_what_to_do() -> None:
    """The executors' logs are far away."""
    versions = SlotVersions("1.1")

    told = versions.refusal("there", "1.0")

    assert told is not None
    assert told == versions.problem
    assert all(each in told for each in ("there", "1.0", "1.1", "spark.pyspark.python"))


def test_a_machine_with_the_right_version_is_no_problem() -> None:
    """Nor is one that has it by now, whatever the others have."""
    versions = SlotVersions("1.1")
    assert versions.refusal("here", "1.1") is None
    assert versions.problem is None

    versions.refusal("there", "1.0")
    of_another = versions.refusal("elsewhere", "1.0")
    versions.refusal("there", "1.1")

    assert of_another == versions.problem
    versions.refusal("elsewhere", "1.1")
    assert versions.problem is None


def test_a_machine_of_which_nothing_is_heard_any_more_is_forgotten() -> None:
    """It may be gone for good."""
    clock = Clock()
    versions = SlotVersions("1.1", clock=clock)
    versions.refusal("there", "1.0")
    clock.now += 59
    assert versions.problem is not None

    versions.refusal("there", "1.0")
    clock.now += 59
    assert versions.problem is not None
    clock.now += 2
    assert versions.problem is None
