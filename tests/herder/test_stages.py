"""KIP-1017's sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.herder.request_queue import Stages

BEGAN = datetime(2024, 10, 25, 3, 33, 1, 123_456, UTC)


def test_the_sentence_is_kafka_connect_s() -> None:
    """Before the first stage there is none; instants are Java's."""
    moments = iter(BEGAN + timedelta(seconds=each) for each in range(9))
    stages = Stages(lambda: next(moments))
    assert stages.sentence() is None

    with stages.during("awaiting startup"):
        assert stages.sentence() == (
            "The worker is currently awaiting startup, which began at 2024-10-25T03:33:01.123Z."
        )
    assert stages.sentence() == (
        "The last operation the worker completed was awaiting startup, which began at "
        "2024-10-25T03:33:01.123Z and completed at 2024-10-25T03:33:02.123Z."
    )


def test_a_current_stage_is_shown_rather_than_a_completed_one() -> None:
    """A long wait is not hidden by short requests meanwhile."""
    stages = Stages()
    with stages.during("waiting for Kafka"):
        with stages.during("writing"):
            assert "currently writing" in (stages.sentence() or "")
        assert "currently waiting for Kafka" in (stages.sentence() or "")
