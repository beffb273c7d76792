"""Requests to the herder's thread, answered in their order."""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ConflictError, NotLeadingError, RequestError, ServerError
from headrace.observe.log_format import in_log_context

_log = logging.getLogger(__name__)
_CLOSED = "Worker is shutting down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An operation that was begun, and perhaps completed; *description* completes "is currently …"."""

    description: str
    began: datetime
    completed: datetime | None = None

    def sentence(self) -> str:
        """Kafka Connect's summary."""
        began = _instant(self.began)
        if self.completed is None:
            return f"The worker is currently {self.description}, which began at {began}."
        return (
            f"The last operation the worker completed was {self.description}, which began at {began} "
            f"and completed at {_instant(self.completed)}."
        )


class Stages:
    """The current operations, and the last one. Any thread may enter a stage, and read."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._current: list[Stage] = []
        self._last: Stage | None = None
        # Several threads may enter and leave at the same time.
        self._lock = threading.Lock()

    @contextmanager
    def during(self, description: str) -> Generator[None]:
        """Be in that stage while the block runs."""
        stage = Stage(description=description, began=self._now())
        with self._lock:
            self._current.append(stage)
        try:
            yield
        finally:
            with self._lock:
                self._current.remove(stage)
                self._last = replace(stage, completed=self._now())

    def sentence(self) -> str | None:
        """The latest current operation, or else the last completed one; ``None`` before the first stage."""
        with self._lock:
            shown = self._current[-1] if self._current else self._last
        return None if shown is None else shown.sentence()


def _instant(moment: datetime) -> str:
    """As Java writes an instant: in UTC, with milliseconds."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    connector: str | None
    stage: str | None
    act: Callable[[], Any]
    answer: Future[Any]


class RequestQueue:
    """Performs requests on a thread of its own. Any thread may submit them.

    A connector may be held: requests about it then wait until it is released, while others continue. Posted
    actions do not wait for holds.
    """

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._items = queue.SimpleQueue[_Request | Callable[[], None] | None]()
        # Used by the queue's thread alone.
        self._held: dict[str, deque[_Request]] = {}
        # Keeps requests from being queued after the last item, where they would never be answered.
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(
            target=in_log_context(self._run), name="headrace-herder", daemon=True
        )

    def start(self) -> None:
        """Start answering."""
        self._thread.start()

    def ask(
        self, stage: str | None, act: Callable[[], Answer], *, connector: str | None = None
    ) -> Answer:
        """Perform *act* on the queue's thread and return its result; blocks until then.

        *stage* describes it in the worker's current stage; ``None`` for actions that are not worth showing.

        Raises :class:`~headrace.herder.errors.ServerError` when the queue closes first.
        """
        return self.submit(stage, act, connector=connector).result()

    def submit(
        self, stage: str | None, act: Callable[[], Answer], *, connector: str | None = None
    ) -> Future[Answer]:
        """As :meth:`ask`, without waiting."""
        answer = Future[Answer]()
        request = _Request(connector=connector, stage=stage, act=act, answer=answer)
        with self._lock:
            if self._is_closed:
                raise ServerError(_CLOSED)
            self._items.put(request)
        return answer

    def post(self, act: Callable[[], None]) -> None:
        """Perform *act* soon, regardless of holds; dropped when the queue is closed."""
        with self._lock:
            if not self._is_closed:
                self._items.put(act)

    def hold(self, connector: str, stage: str) -> None:
        """Return once the caller holds *connector*: until the release no other request about it is performed."""
        self.ask(stage, lambda: self._hold(connector), connector=connector)

    def release(self, connector: str) -> None:
        """Release *connector*; requests that came meanwhile are performed now."""
        self.post(lambda: self._release(connector))

    def close(self) -> None:
        """Answer the queued requests, refuse later ones, and return when the thread has ended."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._items.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while (item := self._items.get()) is not None:
            if isinstance(item, _Request):
                self._take(item)
            else:
                _performed(item)
        for each in (request for waiting in self._held.values() for request in waiting):
            each.answer.set_exception(ServerError(_CLOSED))

    def _take(self, request: _Request) -> None:
        if request.connector is not None and request.connector in self._held:
            self._held[request.connector].append(request)
            return
        with self._stages.during(request.stage) if request.stage else nullcontext():
            _answer(request)

    def _hold(self, connector: str) -> None:
        self._held[connector] = deque()

    def _release(self, connector: str) -> None:
        waiting = self._held.pop(connector, deque[_Request]())
        while waiting:
            request = waiting.popleft()
            self._take(request)
            if connector in self._held:
                # One of these requests was another hold; the rest waits for it.
                self._held[connector].extend(waiting)
                return


def _answer(request: _Request) -> None:
    try:
        request.answer.set_result(request.act())
    except RequestError as error:
        request.answer.set_exception(error)
    except ConnectError as error:
        answered = ConflictError if isinstance(error, NotLeadingError) else ServerError
        failure = answered(str(error))
        failure.__cause__ = error
        request.answer.set_exception(failure)
    except Exception as error:  # noqa: BLE001 (raised in the caller; the thread continues)
        request.answer.set_exception(error)


def _performed(act: Callable[[], None]) -> None:
    try:
        act()
    except Exception:  # noqa: BLE001 (no caller waits for it; the thread continues)
        _log.exception("An event of a connector could not be processed")
