"""A session that is opened once, and an end that waits for no one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from headrace.connect.errors import RetriableError
from headrace.spark.session import SessionKeeper
from waiting import until

PATIENCE_SECONDS = 10.0


@dataclass
class Spark:
    """Plays Spark: opening takes until the test lets it, clearing away as well; notes what is done."""

    done: list[str] = field(default_factory=list[str])
    free: threading.Event = field(default_factory=threading.Event)
    abandoned: threading.Event = field(default_factory=threading.Event)
    fails_when_abandoned: bool = True
    opened: int = 0

    def keeper(self) -> SessionKeeper[str]:
        """A keeper of its sessions."""
        return SessionKeeper(
            open_one=self.open_one,
            stop=lambda session: self.done.append(f"stop {session}"),
            discard=self.discard,
            abandon=self.abandon,
        )

    def open_one(self) -> str:
        """A session, once it is free to be opened."""
        self.done.append("open")
        self._wait()
        self.opened += 1
        return f"session {self.opened}"

    def discard(self, session: str) -> None:
        """Clear a lost session away."""
        self.done.append(f"discard {session}")
        self._wait()

    def abandon(self) -> None:
        """Let what is under way fail, or not."""
        self.done.append("abandon")
        self.abandoned.set()
        if self.fails_when_abandoned:
            self.free.set()

    def _wait(self) -> None:
        assert self.free.wait(PATIENCE_SECONDS)
        if self.abandoned.is_set() and self.fails_when_abandoned:
            raise OSError("cut off")


@dataclass
class Caller:
    """A thread that does something, and what came of it."""

    act: Callable[[], object]
    result: object = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def has_ended(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Whether it is over by then."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.result = self.act()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            self.result = error


def test_several_who_ask_at_once_get_the_one_session() -> None:
    """It is opened once, and later callers get it, too."""
    spark = Spark()
    keeper = spark.keeper()
    callers = [Caller(keeper.session) for _ in range(3)]
    until(lambda: "open" in spark.done)
    spark.free.set()

    assert all(each.has_ended() for each in callers)
    assert ["session 1"] * 3 == [each.result for each in callers]
    assert "session 1" == keeper.session()
    assert ["open"] == spark.done


def test_a_close_does_not_wait_for_the_opening_and_makes_it_fail() -> None:
    """A cluster without free cores never lets it end by itself; those who wait for it end as well."""
    spark = Spark()
    keeper = spark.keeper()
    callers = [Caller(keeper.session) for _ in range(2)]
    until(lambda: "open" in spark.done)

    assert Caller(keeper.close).has_ended()
    assert all(each.has_ended() for each in callers)
    assert [RetriableError] * 2 == [type(each.result) for each in callers]
    assert ["open", "abandon"] == spark.done


def test_a_session_that_comes_after_the_close_is_stopped() -> None:
    """No one else would end it, and no one gets it."""
    spark = Spark(fails_when_abandoned=False)
    keeper = spark.keeper()
    caller = Caller(keeper.session)
    until(lambda: "open" in spark.done)
    closing = Caller(keeper.close)
    assert closing.has_ended()
    spark.free.set()

    assert caller.has_ended()
    assert isinstance(caller.result, RetriableError)
    assert ["open", "abandon", "stop session 1"] == spark.done


def test_a_closed_keeper_opens_nothing_more() -> None:
    """What is open is stopped, once."""
    spark = Spark()
    spark.free.set()
    keeper = spark.keeper()
    keeper.session()
    keeper.close()
    keeper.close()

    with pytest.raises(RetriableError, match="not started any more"):
        keeper.session()
    assert ["open", "stop session 1"] == spark.done


def test_after_an_opening_that_failed_the_next_one_who_asks_opens() -> None:
    """The first hears the reason."""
    spark = Spark()
    spark.free.set()
    spark.abandoned.set()
    keeper = spark.keeper()
    with pytest.raises(OSError, match="cut off"):
        keeper.session()
    spark.abandoned.clear()

    assert "session 1" == keeper.session()


def test_a_lost_session_is_cleared_away_once_before_the_next_is_opened() -> None:
    """However many have noticed, and although one asks in between."""
    spark = Spark()
    spark.free.set()
    keeper = spark.keeper()
    lost = keeper.session()
    spark.free.clear()
    first = Caller(lambda: keeper.replace(lost))
    until(lambda: "discard session 1" in spark.done)
    asking = Caller(keeper.session)
    assert not keeper.replace(lost)
    spark.free.set()

    assert first.has_ended()
    assert asking.has_ended()
    assert (True, "session 2") == (first.result, asking.result)
    assert ["open", "discard session 1", "open"] == spark.done


def test_a_close_does_not_wait_for_the_clearing_away() -> None:
    """A server that is away is asked for minutes to release its session."""
    spark = Spark()
    spark.free.set()
    keeper = spark.keeper()
    lost = keeper.session()
    spark.free.clear()
    replacing = Caller(lambda: keeper.replace(lost))
    until(lambda: "discard session 1" in spark.done)

    assert Caller(keeper.close).has_ended()
    assert replacing.has_ended()
    assert ["open", "discard session 1", "abandon"] == spark.done


def test_what_a_process_has_only_once_is_opened_one_after_the_other() -> None:
    """Another engine's opening is waited for; giving up while waiting leaves that one alone."""
    first, second = Spark(), Spark()
    holder = Caller(first.keeper().session)
    until(lambda: "open" in first.done)
    waiting = second.keeper()
    waiter = Caller(waiting.session)
    assert not waiter.has_ended(0.05)
    waiting.close()
    first.free.set()

    assert holder.has_ended()
    assert waiter.has_ended()
    assert isinstance(waiter.result, RetriableError)
    assert (["open"], []) == (first.done, second.done)
