"""Records that are for the topic of source offsets; in the loop of these tests it is called ``offsets``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.task.connector_spec import ErrorPolicy
from task.loop import Loop, ScriptedTask, batch
from task.test_dead_letters import bad

REFUSED = r"may not produce to their own offsets topics.*topic 'offsets', which holds"


@pytest.mark.parametrize("errors", [ErrorPolicy(), ErrorPolicy(tolerate=True)])
def test_a_record_for_the_own_offsets_topic_fails_the_task(errors: ErrorPolicy) -> None:
    """Whatever is tolerated: it would be taken for an offset."""
    own = replace(batch("b", end=2), topic="offsets")
    loop = Loop(ScriptedTask([batch("a", end=1), own]), errors=errors)

    with pytest.raises(TaskFailedError, match=REFUSED):
        loop.run()

    assert ([], None) == (loop.values(), loop.position())


def test_a_dead_letter_for_the_own_offsets_topic_fails_the_task() -> None:
    """It would be taken for an offset as well."""
    letters = ErrorPolicy(tolerate=True, dead_letters="offsets")

    with pytest.raises(TaskFailedError, match=REFUSED):
        Loop(ScriptedTask(bad(b"{", 1)), errors=letters).run()


def test_without_exactly_once_no_one_looks() -> None:
    """As in Kafka Connect: the offsets may well be in a file."""
    own = replace(batch("a", end=1), topic="offsets")
    loop = Loop(ScriptedTask(own), transactional=False)

    loop.run()

    assert ["a"] == loop.values()
