"""Requests to one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headrace.connect.errors import RetriableError
from headrace.herder.errors import ConflictError, NotFoundError, NotLeadingError, ServerError
from headrace.herder.request_queue import RequestQueue, Stages


@pytest.fixture
def queue() -> Iterator[RequestQueue]:
    """A started one."""
    made = RequestQueue(Stages())
    made.start()
    yield made
    made.close()


def test_requests_are_answered_in_their_order_on_one_thread(queue: RequestQueue) -> None:
    """Whoever asks."""
    done: list[tuple[int, str]] = []

    def act(number: int) -> int:
        done.append((number, threading.current_thread().name))
        return number

    answers = [queue.submit("counting", lambda each=each: act(each)) for each in range(20)]

    assert list(range(20)) == [each.result(10) for each in answers]
    assert [(each, "headrace-herder") for each in range(20)] == done


def test_errors_reach_the_caller(queue: RequestQueue) -> None:
    """As they are; what the stores raise becomes a 500 with its sentence, or a 409 where another worker leads by now."""

    def not_found() -> None:
        raise NotFoundError("Connector c not found")

    def full() -> None:
        raise RetriableError("Is the disk full?")

    def led_elsewhere() -> None:
        raise NotLeadingError("This worker does not lead.")

    with pytest.raises(NotFoundError, match="Connector c not found"):
        queue.ask("looking", not_found)
    with pytest.raises(ServerError, match=r"Is the disk full\?"):
        queue.ask("writing", full)
    with pytest.raises(ConflictError, match="This worker does not lead"):
        queue.ask("writing", led_elsewhere)
    assert queue.ask("going on", lambda: 7) == 7


def test_requests_about_a_held_connector_wait_and_others_do_not(queue: RequestQueue) -> None:
    """In their order, until it is let go."""
    done: list[str] = []
    queue.hold("c", "holding")
    answers = [
        queue.submit(None, lambda each=each: done.append(each), connector="c") for each in "xy"
    ]
    queue.ask(None, lambda: done.append("d"), connector="d")
    assert ["d"] == done

    queue.release("c")
    for each in answers:
        each.result(10)
    assert ["d", "x", "y"] == done


def test_the_next_holder_holds_up_those_behind_it(queue: RequestQueue) -> None:
    """And not those before it."""
    done: list[str] = []
    queue.hold("c", "holding")
    second = threading.Thread(target=lambda: queue.hold("c", "holding, too"))
    first = queue.submit(None, lambda: done.append("before"), connector="c")
    second.start()
    while second.is_alive() and queue.ask(None, lambda: len(queue._held["c"])) < 2:
        pass
    last = queue.submit(None, lambda: done.append("behind"), connector="c")
    queue.release("c")
    first.result(10)
    second.join(10)
    queue.ask(None, lambda: None)
    assert ["before"] == done

    queue.release("c")
    last.result(10)
    assert ["before", "behind"] == done


def test_a_closed_queue_refuses_and_answers_everybody() -> None:
    """Nobody waits for ever."""
    queue = RequestQueue(Stages())
    queue.start()
    queue.hold("c", "holding")
    waiting = queue.submit(None, lambda: None, connector="c")
    queue.close()

    with pytest.raises(ServerError, match="Worker is shutting down"):
        waiting.result(10)
    with pytest.raises(ServerError, match="Worker is shutting down"):
        queue.ask(None, lambda: None)


def test_a_posted_action_that_fails_stops_no_one(
    queue: RequestQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged."""

    def fail() -> None:
        raise ValueError("unexpected")

    queue.post(fail)

    assert queue.ask(None, lambda: "there") == "there"
    assert "unexpected" in caplog.text
