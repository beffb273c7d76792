"""Every format, both kinds of delivery, every look-back: processes die after chosen records, and nothing is lost."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from doubles.process_engine import ProcessEngine
from end_to_end.contents import FORMATS, PIECE, Written, canonical
from end_to_end.dying_task import KILLS, MARKS
from end_to_end.live import Life
from end_to_end.scene import SENDERS
from headrace.observe.events import Replanned
from headrace.runtime.engine import Engine
from headrace.spark.engine import SparkEngine
from headrace.testing.judge import judged

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.slow]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Several commits before each death and after it, in less than a second.
_COMMIT_MS, _RECORDS_PER_SECOND = 25, 500
_OBJECTS, _RECORDS = 2, 40
_LETTERS, _LETTER_RECORDS = 40, 4
# Files of one connector; pieces of bytes need settings of their own.
_TOGETHER = [(".jsonl", ".csv", ".jsonl.gz"), (".avro", ".parquet"), (".bin",)]


@dataclass
class Matrix:
    """Connectors of one worker, whose processes die *deaths* times; *expected* is what has to come, by connector."""

    life: Life
    chance: random.Random
    expected: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    deaths: dict[str, int] = field(default_factory=dict[str, int])

    def add_files(self, suffixes: Sequence[str], seed: int) -> None:
        """Read some objects of each format in *suffixes*; a death inside one of each."""
        folder = self.life.folder / self.life.next_name()
        folder.mkdir()
        values, kills = list[bytes](), list[str]()
        for suffix in suffixes:
            victim = self.chance.randrange(_OBJECTS)
            for number in range(_OBJECTS):
                written = FORMATS[suffix](number, 10 * seed + number, _RECORDS)
                (folder / f"{number}{suffix}").write_bytes(written.content)
                values += written.values
                if number == victim:
                    kills.append(self._inside(f"{number}{suffix}", written))
        form = {"files_format": "bytes", "value_converter": "bytes"} if ".bin" in suffixes else {}
        self._add(
            "end_to_end.dying_task:DyingFiles",
            values,
            kills,
            files_path=str(folder),
            files_min_age_ms="0",
            files_batch_max_rows="10",
            files_bytes_per_record=str(PIECE),
            **form,
        )

    def add_ranges(self, suffixes: Sequence[str], seed: int) -> None:
        """Read a large object of each format in ranges, in two slots; a death inside a range of each."""
        folder = self.life.folder / self.life.next_name()
        folder.mkdir()
        values, kills, sizes = list[bytes](), list[str](), list[int]()
        for number, suffix in enumerate(suffixes):
            written = FORMATS[suffix](number, 10 * seed + number, 3 * _RECORDS)
            (folder / f"{number}{suffix}").write_bytes(written.content)
            values += written.values
            sizes.append(len(written.content))
            # A range counts its own records, and each block and row group has more than these.
            kills.append(f"{number}{suffix}:{self.chance.randrange(1, 4)}")
        self._add(
            "end_to_end.dying_task:DyingFiles",
            values,
            kills,
            files_path=str(folder),
            files_min_age_ms="0",
            files_batch_max_rows="10",
            files_split_bytes=str(min(sizes) // 5),
        )
        self.life.connectors[-1]["tasks.max"] = "2"

    def add_letters(self, suffix: str, look_back: int, seed: int) -> None:
        """Read many letters of a format with the source framework, going back *look_back* keys each time."""
        database = self.life.folder / f"{self.life.next_name()}.db"
        values, kills = list[bytes](), list[str]()
        # Two digits, so that no other letter's number ends like it.
        victim = self.chance.randrange(10, _LETTERS)
        with closing(sqlite3.connect(database)) as opened, opened:
            opened.execute("CREATE TABLE letters (id INTEGER PRIMARY KEY, content BLOB)")
            for number in range(_LETTERS):
                written = FORMATS[suffix](number, 1000 * seed + number, _LETTER_RECORDS)
                opened.execute("INSERT INTO letters VALUES (?, ?)", [number, written.content])
                values += written.values
                if number == victim:
                    kills.append(self._inside(str(number), written))
        form = {"value_converter": "bytes"} if suffix == ".bin" else {}
        self._add(
            "end_to_end.dying_letters:DyingLetters",
            values,
            kills,
            database=str(database),
            extractor_class={".bin": "bytes"}.get(suffix, suffix[1:]),
            extractor_buffer=str(PIECE),
            max_poll_records="3",
            ring_buffer_size=str(look_back),
            **form,
        )

    def _inside(self, name: str, written: Written) -> str:
        """A death after some record of an object, but not its last one."""
        return f"{name}:{self.chance.randrange(1, len(written.values))}"

    def _add(
        self, kind: str, values: Sequence[bytes], kills: Sequence[str], **settings: str
    ) -> None:
        name = self.life.add(kind, None, **settings)
        marks = self.life.folder / f"{name}-deaths"
        marks.mkdir()
        self.life.connectors[-1] |= {
            "tasks.max": "1",
            "headrace.sender": self.chance.choice(SENDERS),
            "transaction.boundary.interval.ms": str(_COMMIT_MS),
            "headrace.max.records.per.second": str(_RECORDS_PER_SECOND),
            KILLS: ",".join(kills),
            MARKS: str(marks),
        }
        self.expected[name] = [canonical(each) for each in values]
        self.deaths[name] = len(kills)

    def interrupted(self) -> Mapping[str, int]:
        """How many deaths there were, each of which made the driver plan again."""
        return {
            name: min(
                len(list((self.life.folder / f"{name}-deaths").iterdir())),
                len(self.life.heard(Replanned, of=name)),
            )
            for name in self.deaths
        }

    def judge(self, *, once: bool) -> None:
        """Assert what another client library finds in the topics."""
        for name, expected in self.expected.items():
            verdict = judged(self.life.bootstrap, name, expected, form=canonical)
            assert (0, 0) == (verdict.lost, verdict.foreign), (name, verdict)
            # What was stored before a death is not read again.
            assert verdict.twice <= (0 if once else len(expected) // 2), (name, verdict)


def matrix(
    bootstrap: str,
    folder: Path,
    engine: Engine,
    *,
    mode: str,
    seed: int,
    together: Sequence[Sequence[str]] = _TOGETHER,
) -> Matrix:
    """A worker with a connector for files of each kind, *together* where one connector can read them."""
    life = Life(bootstrap, folder, engine=engine)
    life.worker |= {
        "exactly.once.source.support": mode,
        "value.converter": "json",
        "value.converter.schemas.enable": "false",
        "offset.flush.interval.ms": str(_COMMIT_MS),
        "headrace.slots": str(engine.slots),
        "poll.linger.ms": "300",
        "plugin.modules": "end_to_end.dying_task, end_to_end.dying_letters",
    }
    played = Matrix(life, random.Random(seed))
    for suffixes in together:
        played.add_files(suffixes, seed)
    return played


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessEngine]:
    """Slots in processes, which find the examples, too."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    made = ProcessEngine(slots=6)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("mode", "seed", "letters"),
    [
        ("enabled", 1, (".jsonl", ".avro", ".bin")),
        # What loses a record here loses it with exactly-once, too, which every run plays.
        pytest.param("disabled", 2, (".csv", ".parquet", ".avro"), marks=pytest.mark.sampled(0)),
    ],
)
def test_records_that_processes_die_behind_are_not_lost(  # noqa: PLR0917
    bootstrap: str,
    tmp_path: Path,
    engine: ProcessEngine,
    mode: str,
    seed: int,
    letters: Sequence[str],
) -> None:
    """Inside files of every format, and inside letters with look-backs of 0, 1 and 2."""
    played = matrix(bootstrap, tmp_path, engine, mode=mode, seed=seed)
    for look_back, suffix in enumerate(letters):
        played.add_letters(suffix, look_back, seed)

    assert {} == played.life.run_once()

    assert played.deaths == played.interrupted()
    played.judge(once=mode == "enabled")


def test_ranges_of_large_files_outlive_the_processes_that_read_them(
    bootstrap: str, tmp_path: Path, engine: ProcessEngine
) -> None:
    """Each record of a file in ranges comes once, whichever slot dies."""
    played = matrix(bootstrap, tmp_path, engine, mode="enabled", seed=4, together=())
    played.add_ranges((".avro", ".parquet"), seed=4)

    assert {} == played.life.run_once()

    # Both slots may die within one micro-batch, which is then planned again once.
    assert all(played.interrupted().values())
    played.judge(once=True)


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_processes_of_spark_may_die_too(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """A death for each format, in one session; that of one connector's process is no other's."""
    played = matrix(bootstrap, tmp_path, spark_engine, mode="enabled", seed=3)

    assert {} == played.life.run_once()

    assert played.deaths == played.interrupted()
    played.judge(once=True)
