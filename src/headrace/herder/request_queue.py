"""Requests to the herder's thread, answered in the order in which they come, once Kafka is there if they need it."""

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
from headrace.herder.errors import RequestError, ServerError
from headrace.herder.services import KafkaServices


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Something that was begun, and perhaps completed; *description* goes on from "is currently"."""

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
    """What goes on, and what was last. Any thread may enter a stage, and read."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._current: list[Stage] = []
        self._last: Stage | None = None
        # Two threads may enter and leave at once.
        self._guard = threading.Lock()

    @contextmanager
    def during(self, description: str) -> Generator[None]:
        """Be in that stage while the block runs."""
        stage = Stage(description=description, began=self._now())
        with self._guard:
            self._current.append(stage)
        try:
            yield
        finally:
            with self._guard:
                self._current.remove(stage)
                self._last = replace(stage, completed=self._now())

    def sentence(self) -> str | None:
        """What goes on, the latest of it, or what was completed last; ``None`` before the first stage."""
        with self._guard:
            shown = self._current[-1] if self._current else self._last
        return None if shown is None else shown.sentence()


def _instant(moment: datetime) -> str:
    """As Java writes an instant: in UTC, with milliseconds."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_CLOSED = "Worker is shutting down"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    connector: str | None
    stage: str | None
    act: Callable[[], Any]
    answer: Future[Any]


class RequestQueue:
    """Performs what is asked on a thread of its own. Any thread may ask.

    A connector may be held: requests about it then wait until it is let go, and others go on. What is
    *told* waits for nothing.
    """

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._items = queue.SimpleQueue[_Request | Callable[[], None] | None]()
        # Touched by the thread alone.
        self._held: dict[str, deque[_Request]] = {}
        # Keeps a request from coming behind the last item, where no one would answer it.
        self._guard = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="headrace-herder", daemon=True)

    def start(self) -> None:
        """Start answering."""
        self._thread.start()

    def ask(
        self, stage: str | None, act: Callable[[], Answer], *, connector: str | None = None
    ) -> Answer:
        """What *act* returns or raises when it is performed; blocks until then.

        *stage* is told to those who wonder what takes so long; ``None`` for what is not worth telling.

        Raises :class:`~headrace.herder.errors.ServerError` when the queue closes first.
        """
        return self.submit(stage, act, connector=connector).result()

    def submit(
        self, stage: str | None, act: Callable[[], Answer], *, connector: str | None = None
    ) -> Future[Answer]:
        """As :meth:`ask`, without waiting."""
        answer = Future[Answer]()
        request = _Request(connector=connector, stage=stage, act=act, answer=answer)
        with self._guard:
            if self._is_closed:
                raise ServerError(_CLOSED)
            self._items.put(request)
        return answer

    def post(self, act: Callable[[], None]) -> None:
        """Perform *act* some time soon, holds or not; forgotten when the queue is closed."""
        with self._guard:
            if not self._is_closed:
                self._items.put(act)

    def hold(self, connector: str, stage: str) -> None:
        """Return once *connector* is the caller's: no other request about it is performed then."""
        self.ask(stage, lambda: self._hold(connector), connector=connector)

    def let_go(self, connector: str) -> None:
        """End a hold; what came meanwhile is performed now."""
        self.post(lambda: self._let_go(connector))

    def close(self) -> None:
        """Answer what has come by now, refuse the rest, and return when the thread has ended."""
        with self._guard:
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

    def _let_go(self, connector: str) -> None:
        waiting = self._held.pop(connector, deque[_Request]())
        while waiting:
            request = waiting.popleft()
            self._take(request)
            if connector in self._held:
                # The next holder came before these.
                self._held[connector].extend(waiting)
                return


def _answer(request: _Request) -> None:
    try:
        request.answer.set_result(request.act())
    except RequestError as error:
        request.answer.set_exception(error)
    except ConnectError as error:
        told = ServerError(str(error))
        told.__cause__ = error
        request.answer.set_exception(told)
    except Exception as error:  # noqa: BLE001 (whoever asked is told; the thread goes on for the others)
        request.answer.set_exception(error)


def _performed(act: Callable[[], None]) -> None:
    try:
        act()
    except Exception:  # noqa: BLE001 (no one waits for it; the thread goes on for the others)
        _log.exception("Something that happened to a connector could not be dealt with")


# Shorter than REST waits for an answer, so that the sentence is this one.
_WAIT_SECONDS = 60.0


class KafkaReadiness:
    """Opened once, or told that it never will be. Any thread may call."""

    def __init__(self, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._settled = threading.Event()
        self._kafka: KafkaServices | None = None
        self._failure: Exception | None = None

    def open(self, kafka: KafkaServices) -> None:
        """Let everybody through."""
        self._kafka = kafka
        self._settled.set()

    def refuse(self, failure: Exception) -> None:
        """Say why no one will ever be let through."""
        self._failure = failure
        self._settled.set()

    @property
    def failure(self) -> Exception | None:
        """Why the gate stays shut."""
        return self._failure

    def peek(self) -> KafkaServices | None:
        """What is behind the gate, if it is open."""
        return self._kafka

    def kafka(self) -> KafkaServices:
        """What is behind the gate; waits a minute for it.

        Raises :class:`~headrace.herder.errors.ServerError` when it does not open.
        """
        self._settled.wait(self._wait_seconds)
        if self._kafka is None:
            if isinstance(self._failure, ServerError):
                raise ServerError(str(self._failure))
            why = self._failure or "Kafka is not reached yet. Try again when it is."
            raise ServerError(f"The worker is still starting up: {why}")
        return self._kafka
