"""`headrace workers`: lists the workers of a group, and has one hand its connectors over before it ends (KIP-995)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from enum import Enum, auto
from typing import Final

import click
import msgspec

from headrace.cli.rest_client import (
    LoginError,
    NoWorkerError,
    RestClient,
    UnreachableError,
    WorkerError,
)
from headrace.cli.table import one_line, table
from headrace.cli.worker_options import CommandContext, completed_workers, with_worker
from headrace.connect.errors import ConnectError
from headrace.herder.answers import WorkerState

_LOOK_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 10.0
_TIMEOUT_SECONDS: Final = 60.0
# More would fill the screen.
_FEW: Final = 8


class Listed(msgspec.Struct, frozen=True):
    """One of ``GET /admin/workers``."""

    id: str
    url: str
    version: str
    slots: int
    is_leader: bool
    state: WorkerState
    connectors: Sequence[str]


class Progress(Enum):
    """How far a worker is that was to hand its connectors over."""

    WAITS = auto()
    HAS_LEFT = auto()
    IS_EMPTY = auto()
    """It stays, and has no connectors."""
    IS_BACK = auto()
    """It takes connectors again, or has been started again although it was to stay."""


def progress(found: Listed | None, *, stay: bool, was: WorkerState | None) -> Progress:
    """How far the worker is, as it was *found* in the group, or not; *was* is the state in which it was before. Pure."""
    if found is None:
        return Progress.HAS_LEFT
    if found.state is WorkerState.UNREACHABLE:
        # It may have ended; the group has not missed it yet.
        return Progress.WAITS
    if found.state is WorkerState.LEAVING:
        return Progress.IS_EMPTY if stay and not found.connectors else Progress.WAITS
    if found.state is WorkerState.ARRIVING and was is not WorkerState.ARRIVING:
        # Its service has started it again.
        return Progress.IS_BACK if stay else Progress.HAS_LEFT
    return Progress.IS_BACK if was is WorkerState.LEAVING else Progress.WAITS


def list_lines(found: Sequence[Listed]) -> Iterator[str]:
    """One line for each worker."""
    rows = [
        (
            each.id,
            each.state.value,
            "yes" if each.is_leader else "-",
            str(each.slots),
            str(len(each.connectors)),
            each.version or "-",
        )
        for each in sorted(found, key=lambda each: each.id)
    ]
    yield from table(("worker", "state", "leader", "slots", "connectors", "version"), rows)


@click.group()
def workers() -> None:
    """List the workers of a group, and have one of them leave it."""


@workers.command("list")
@with_worker
def list_all(context: CommandContext) -> None:
    """List the workers, with how many connectors each of them runs."""
    answer = context.worker.get("admin", "workers")
    context.show(answer, list_lines(context.worker.understood(answer, list[Listed])))


@workers.command()
@with_worker
@click.argument("worker", shell_complete=completed_workers)
@click.option("--stay", is_flag=True, help="It does not end, and stays without connectors.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=_TIMEOUT_SECONDS,
    show_default=True,
    help="How long to wait until it has handed over.",
)
def relinquish(context: CommandContext, worker: str, *, stay: bool, timeout: float) -> None:
    """Have WORKER hand its connectors over to the others, and end; returns when it has left."""
    group = _listed(context.worker)
    query = {"stay": "true"} if stay else None
    answer = context.worker.request("PUT", "admin", "workers", worker, "relinquish", query=query)
    found = next((each for each in group if each.id == worker), None)
    # Those of Kafka Connect, without a version of headrace, know no such question.
    others = [each.url for each in group if each.id != worker and each.url and each.version]
    # The one that leaves is asked first: it knows at once. One without others is at the address that was asked, whatever it advertises.
    first = [found.url] if found and found.url and others else []
    urls = [*first, context.worker.url, *others]
    with ExitStack() as opened:
        asked = Asked(
            [
                opened.enter_context(context.worker.at(url, seconds=_ANSWER_SECONDS))
                for url in dict.fromkeys(each.rstrip("/") for each in urls)
            ]
        )
        was = None if found is None else found.state
        reached = _awaited(asked, worker, was, stay=stay, seconds=timeout)
    if reached is Progress.IS_BACK:
        raise ConnectError(
            f"Worker {worker} takes connectors again: someone had it rejoin, or started it again."
        )
    context.show(answer, [one_line(_sentence(worker, reached))])


@workers.command()
@with_worker
@click.argument("worker", shell_complete=completed_workers)
def rejoin(context: CommandContext, worker: str) -> None:
    """Have WORKER take connectors again."""
    answer = context.worker.request("PUT", "admin", "workers", worker, "rejoin")
    context.show(answer, [one_line(f"Worker {worker} takes connectors again.")])


def _listed(asked: RestClient) -> Sequence[Listed]:
    return asked.understood(asked.get("admin", "workers"), list[Listed])


class Asked:
    """The workers of a group, of which one at a time is asked: the first of *clients* is that of the worker that is to leave.

    When one does not answer, the next one is asked.
    """

    def __init__(self, clients: Sequence[RestClient]) -> None:
        self._clients = deque(clients)
        self._leaving = clients[0]
        self._is_known = len(clients) == 1
        self._refusals = 0
        self._found: Listed | None = None

    def find(self, worker: str) -> Listed | None:
        """The *worker* as it is in the group, or not. Raises ``WorkerError``."""
        client = self._clients[0]
        try:
            found = next((each for each in _listed(client) if each.id == worker), None)
        except WorkerError as error:
            self._clients.rotate(-1)
            self._refusals = self._refusals + 1 if isinstance(error, NoWorkerError) else 0
            self._is_known |= client is self._leaving and not isinstance(error, UnreachableError)
            raise
        self._refusals = 0
        self._is_known |= client is self._leaving
        if found is not None and found.state is not WorkerState.UNREACHABLE:
            self._found = found
        return found

    def nothing_is_left(self) -> bool:
        """Whether the worker was reached at its address before, and now nothing listens there.

        It had handed over, or nothing listens at the addresses of the others either, which have left, too.
        """
        if not (self._is_known and self._refusals):
            return False
        has_handed_over = (
            self._found is not None
            and self._found.state is WorkerState.LEAVING
            and not self._found.connectors
            and self._clients[-1] is self._leaving
        )
        return has_handed_over or self._refusals >= len(self._clients)


def _awaited(
    asked: Asked,
    worker: str,
    was: WorkerState | None,
    *,
    stay: bool,
    seconds: float,
) -> Progress:
    """What has become of *worker*. Raises ``ConnectError`` when nothing has in time."""
    until = time.monotonic() + seconds
    while True:
        try:
            found = asked.find(worker)
        except LoginError:
            raise
        except WorkerError as error:
            if asked.nothing_is_left():
                return Progress.HAS_LEFT
            reason = str(error)
        else:
            reached = progress(found, stay=stay, was=was)
            if found is None or reached is not Progress.WAITS:
                return reached
            was = was if found.state is WorkerState.UNREACHABLE else found.state
            reason = _what_it_has(found)
        if time.monotonic() >= until:
            raise ConnectError(
                f"Worker {worker} has not {'handed over' if stay else 'left'} within {seconds:g} s. {reason}"
            )
        time.sleep(_LOOK_SECONDS)


def _what_it_has(found: Listed) -> str:
    names = sorted(found.connectors)
    more = [f"{len(names) - _FEW} more"] if len(names) > _FEW else []
    has = f"still runs {', '.join([*names[:_FEW], *more])}" if names else "runs nothing"
    return (
        f"It is {found.state} and {has}. It goes on; 'headrace workers list' shows how far it is."
    )


def _sentence(worker: str, reached: Progress) -> str:
    if reached is Progress.IS_EMPTY:
        return f"Worker {worker} has no connectors, and takes none until 'headrace workers rejoin {worker}'."
    return f"Worker {worker} has left the group."
