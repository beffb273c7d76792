"""Both kinds of delivery, every boundary, everything that ``update_offsets`` does, and a death at every moment."""

from __future__ import annotations

import itertools
import json
import random
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from doubles.process_engine import ProcessEngine
from end_to_end.commit_model import Cell, Ends, Model, Moment, Outcome, Update
from end_to_end.dying_commits import ENDS, GROUPS, MARKS, MOMENT, UPDATE
from end_to_end.live import Life
from end_to_end.planned_commits import SQL, selected
from end_to_end.scene import SENDERS
from headrace.runtime.engine import Engine
from headrace.spark.engine import SparkEngine
from headrace.testing.judge import committed_records

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.slow]

_POLLED = "end_to_end.dying_commits:DyingCommits"
_PLANNED = "end_to_end.planned_commits:PlannedCommits"
# The second time it reads on from where the first has ended; both end behind a transaction's last group.
_FIRST, _SECOND = 5, 7
# So many micro-batches read them, if each ends with a transaction, and one more has nothing.
_MICRO_BATCHES = {_FIRST: 4, _SECOND: 2}
# The long one never comes, and is below the time-out of transactions.
_SHORT_MS, _LONG_MS = "1", "50000"

_CELLS = (list(Update), list(Moment), list(Ends))

BOUNDARIES: Mapping[Ends, Mapping[str, str]] = {
    Ends.POLL: {"transaction.boundary": "poll"},
    Ends.PIECE: {
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": _SHORT_MS,
    },
    Ends.LAST: {"transaction.boundary": "interval", "transaction.boundary.interval.ms": _LONG_MS},
    Ends.ASKED: {"transaction.boundary": "connector"},
}
FLUSHES: Mapping[Ends, str] = {Ends.PIECE: _SHORT_MS, Ends.LAST: _LONG_MS}


class CommitMatrix:
    """Cells with one way of delivery and one kind of boundary, as connectors of one worker, *with_sql* or without."""

    def __init__(self, life: Life, ends: Ends, *, exactly_once: bool, with_sql: bool) -> None:
        self._life = life
        self._ends, self._exactly_once, self._with_sql = ends, exactly_once, with_sql
        self._cells: dict[str, Cell] = {}
        # Seeded anew for each run of the tests, so that in time each cell has either sender.
        self._first_sender = random.randrange(len(SENDERS))
        life.worker |= {
            "exactly.once.source.support": "enabled" if exactly_once else "disabled",
            "offset.storage.topic": f"{life.name}-offsets",
            "headrace.slots": str(life.engine.slots),
            # Nothing but the deaths may end a slot, however busy the machine is.
            "headrace.lease.ms": "40000",
            "headrace.batch.budget.ms": _LONG_MS,
            "plugin.modules": "end_to_end.dying_commits, end_to_end.planned_commits",
        }
        if not exactly_once:
            life.worker["offset.flush.interval.ms"] = FLUSHES[ends]

    def add(self, update: Update, moment: Moment) -> None:
        """A connector for that cell."""
        marks = self._life.folder / self._life.next_name()
        marks.mkdir()
        name = self._life.add(_PLANNED if self._with_sql else _POLLED)
        self._life.connectors[-1] |= {
            "tasks.max": "1",
            ENDS: self._ends,
            UPDATE: update,
            MOMENT: moment,
            MARKS: str(marks),
            "headrace.sender": self._sender(update, moment),
            **(BOUNDARIES[self._ends] if self._exactly_once else {}),
            **(SQL if self._with_sql else {}),
        }
        self._cells[name] = Cell(
            ends=self._ends,
            exactly_once=self._exactly_once,
            update=update,
            moment=moment,
            planned=self._with_sql,
        )

    def _sender(self, update: Update, moment: Moment) -> str:
        """One in half of the cells, the other in those next to them."""
        place = (
            each.index(of) for each, of in zip(_CELLS, (update, moment, self._ends), strict=True)
        )
        return SENDERS[(self._first_sender + sum(place)) % len(SENDERS)]

    def read(self, groups: int) -> Mapping[str, Exception]:
        """Run all connectors until they have read so many groups; the failures."""
        for each in self._life.connectors:
            each[GROUPS] = str(groups)
        ends_early = self._ends is Ends.LAST and not self._with_sql
        runs = _MICRO_BATCHES[groups] if ends_early else 1
        return dict(ChainMap(*(dict(self._life.run_once()) for _ in range(runs))))

    def expected(self, runs: Iterable[int]) -> Mapping[str, Outcome]:
        """What is to be found of each cell after these runs."""
        models = {name: Model(cell) for name, cell in self._cells.items()}
        for groups in runs:
            for each in models.values():
                each.read(groups)
        for each in models.values() if self._with_sql else ():
            each.outcome.values = selected(each.outcome.values)
        return {_title(self._cells[name]): each.outcome for name, each in models.items()}

    def found(self) -> Mapping[str, Outcome]:
        """What another client library finds of each cell."""
        outcomes = {name: Outcome() for name in self._cells}
        for each in committed_records(self._life.bootstrap, f"{self._life.name}-offsets"):
            connector, partition = json.loads(each.key)
            offset = None if each.value is None else json.loads(each.value)
            outcomes[connector].offsets.setdefault(partition["source"], []).append(offset)
        for name, outcome in outcomes.items():
            outcome.values += self._life.values(name)
            marks = [self._life.folder / name / each for each in ("records", "idle")]
            outcome.resumed += [json.loads(each.read_text()) for each in marks if each.exists()]
        return {_title(self._cells[name]): each for name, each in outcomes.items()}


def _title(cell: Cell) -> str:
    return f"{cell.update}, {cell.moment}"


@dataclass(frozen=True, slots=True)
class Played:
    """What two runs over the cells of a matrix have left in Kafka, each beside what the model says."""

    failures: list[Mapping[str, Exception]]
    expected: list[Mapping[str, Outcome]]
    found: list[Mapping[str, Outcome]]


def played(
    life: Life,
    ends: Ends,
    cells: Iterable[tuple[Update, Moment]],
    *,
    on: bool,
    with_sql: bool = False,
) -> Played:
    """Run *cells* with their deaths, and once more."""
    matrix = CommitMatrix(life, ends, exactly_once=on, with_sql=with_sql)
    for update, moment in cells:
        matrix.add(update, moment)
    seen = Played([], [], [])
    for runs in ([_FIRST], [_FIRST, _SECOND]):
        seen.failures.append(matrix.read(runs[-1]))
        seen.expected.append(matrix.expected(runs))
        seen.found.append(matrix.found())
    return seen


@pytest.fixture
def engine() -> Iterable[Engine]:
    """A slot for each cell, so that none waits for another."""
    made = ProcessEngine(slots=12, python_path=[str(Path(__file__).parent.parent)])
    yield made
    made.close()


@pytest.mark.sampled(1)
@pytest.mark.timeout(240)
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("ends", BOUNDARIES)
def test_no_death_shows_with_exactly_once(
    bootstrap: str, tmp_path: Path, engine: Engine, *, ends: Ends, moment: Moment
) -> None:
    """Records and offsets are those of a connector that never died, and a second run goes on from there."""
    cells = itertools.product(Update, [moment])

    seen = played(Life(bootstrap, tmp_path, engine=engine), ends, cells, on=True)

    assert [{}, {}] == seen.failures
    assert seen.expected == seen.found


@pytest.mark.sampled(1)
@pytest.mark.timeout(240)
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("ends", FLUSHES)
def test_at_least_once_sends_again_what_its_offsets_do_not_cover(
    bootstrap: str, tmp_path: Path, engine: Engine, *, ends: Ends, moment: Moment
) -> None:
    """Nothing is lost, and what is there twice is what was sent since the last flush."""
    cells = itertools.product(Update, [moment])

    seen = played(Life(bootstrap, tmp_path, engine=engine), ends, cells, on=False)

    assert [{}, {}] == seen.failures
    assert seen.expected == seen.found


@pytest.mark.spark
@pytest.mark.timeout(480)
def test_processes_of_spark_die_in_their_commits_too(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """A cell for each moment, in one session."""
    updates = (Update.ADD, Update.TOMBSTONE, Update.REPLACE)
    cells = zip(updates, Moment, strict=True)

    life = Life(bootstrap, tmp_path, engine=spark_engine)

    seen = played(life, Ends.PIECE, cells, on=True)

    assert [{}, {}] == seen.failures
    assert seen.expected == seen.found


@pytest.mark.sampled(1)
@pytest.mark.spark
@pytest.mark.timeout(480)
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize(
    # Which pieces of polls come to the committing process together is Spark's choice.
    ("ends", "on"),
    [(Ends.POLL, True), (Ends.LAST, True), (Ends.ASKED, True), (Ends.LAST, False)],
)
def test_no_death_shows_behind_sql(
    bootstrap: str,
    tmp_path: Path,
    spark_engine: SparkEngine,
    *,
    ends: Ends,
    moment: Moment,
    on: bool,
) -> None:
    """The same cells where one process reads and another one writes, and dies, and what SQL drops moves its offset."""
    cells = itertools.product(Update, [moment])

    seen = played(Life(bootstrap, tmp_path, engine=spark_engine), ends, cells, on=on, with_sql=True)

    assert [{}, {}] == seen.failures
    assert seen.expected == seen.found
