"""Requests to one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headrace.connect.errors import RetriableError
from headrace.runtime.herder.errors import NotFoundError, ServerError
from headrace.runtime.standalone.inbox import Inbox
from headrace.runtime.standalone.stages import Stages


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    """A started one."""
    made = Inbox(Stages())
    made.start()
    yield made
    made.close()


def test_requests_are_answered_in_their_order_on_one_thread(inbox: Inbox) -> None:
    """Whoever asks."""
    done: list[tuple[int, str]] = []

    def act(number: int) -> int:
        done.append((number, threading.current_thread().name))
        return number

    answers = [inbox.submit("counting", lambda each=each: act(each)) for each in range(20)]

    assert list(range(20)) == [each.result(10) for each in answers]
    assert [(each, "headrace-herder") for each in range(20)] == done


def test_errors_reach_whoever_asked(inbox: Inbox) -> None:
    """As they are; what the stores raise becomes a 500 with its sentence."""

    def not_found() -> None:
        raise NotFoundError("Connector c not found")

    def full() -> None:
        raise RetriableError("Is the disk full?")

    with pytest.raises(NotFoundError, match="Connector c not found"):
        inbox.ask("looking", not_found)
    with pytest.raises(ServerError, match=r"Is the disk full\?"):
        inbox.ask("writing", full)
    assert inbox.ask("going on", lambda: 7) == 7


def test_requests_about_a_held_connector_wait_and_others_do_not(inbox: Inbox) -> None:
    """In their order, until it is let go."""
    done: list[str] = []
    inbox.hold("c", "holding")
    answers = [
        inbox.submit(None, lambda each=each: done.append(each), connector="c") for each in "xy"
    ]
    inbox.ask(None, lambda: done.append("d"), connector="d")
    assert ["d"] == done

    inbox.let_go("c")
    for each in answers:
        each.result(10)
    assert ["d", "x", "y"] == done


def test_the_next_holder_holds_up_those_behind_it(inbox: Inbox) -> None:
    """And not those before it."""
    done: list[str] = []
    inbox.hold("c", "holding")
    second = threading.Thread(target=lambda: inbox.hold("c", "holding, too"))
    first = inbox.submit(None, lambda: done.append("before"), connector="c")
    second.start()
    while second.is_alive() and inbox.ask(None, lambda: len(inbox._held["c"])) < 2:
        pass
    last = inbox.submit(None, lambda: done.append("behind"), connector="c")
    inbox.let_go("c")
    first.result(10)
    second.join(10)
    inbox.ask(None, lambda: None)
    assert ["before"] == done

    inbox.let_go("c")
    last.result(10)
    assert ["before", "behind"] == done


def test_a_closed_inbox_refuses_and_answers_everybody() -> None:
    """Nobody waits for ever."""
    inbox = Inbox(Stages())
    inbox.start()
    inbox.hold("c", "holding")
    waiting = inbox.submit(None, lambda: None, connector="c")
    inbox.close()

    with pytest.raises(ServerError, match="Worker is shutting down"):
        waiting.result(10)
    with pytest.raises(ServerError, match="Worker is shutting down"):
        inbox.ask(None, lambda: None)


def test_what_is_told_and_fails_stops_nobody(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged."""

    def fail() -> None:
        raise ValueError("unexpected")

    inbox.tell(fail)

    assert inbox.ask(None, lambda: "there") == "there"
    assert "unexpected" in caplog.text
