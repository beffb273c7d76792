"""Another process with a Spark session of another kind, which plays what tests ask for: one for all that need it.

A process has one Spark session, and that of the tests' own process is a classic one on ``local``. As a program
it opens a session, and plays each line of its input.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from pyspark.sql import SparkSession

from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings

_TESTS = Path(__file__).parent.parent
Told = Mapping[str, object]
FOLDER = "HEADRACE_TEST_PLAYER"


class Program(Protocol):
    """A module that can be played."""

    def play(self, session: SparkSession, asked: Mapping[str, Any]) -> Iterable[Told]:
        """Do what is asked for on *session*; what there is to tell about it."""
        ...


class Player:
    """Started on entry, ended on exit; *settings* say which session it opens, and *folder* takes what it logs.

    All processes of the session find the folder in the environment, as ``HEADRACE_TEST_PLAYER``.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder, self._settings = folder, settings
        self._log = folder / "player.log"

    def __enter__(self) -> Self:
        path = os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")])
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "end_to_end.player", json.dumps(self._settings)],
                env={**os.environ, "PYTHONPATH": path, FOLDER: str(self._folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        # The start of Spark is no test's own time.
        self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def play(self, program: str, **asked: object) -> list[Told]:
        """Have the module *program* played; what it told."""
        assert self._process.stdin is not None
        print(json.dumps({"program": program, **asked}), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> list[Told]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # Others in that process may print, too.
            if line.startswith('{"told"'):
                answer = json.loads(line)
                assert "error" not in answer, answer["error"]
                return answer["told"]
        raise AssertionError(f"The player ended:\n{self._log.read_text()[-4000:]}")


def _answered(session: SparkSession, asked: Mapping[str, Any]) -> Mapping[str, object]:
    program: Any = importlib.import_module(asked["program"])
    try:
        return {"told": list(program.play(session, asked))}
    except Exception:  # noqa: BLE001 (whoever asked gets it)
        return {"told": [], "error": traceback.format_exc()}


def _tell(answer: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Open a session, and play."""
    engine = SparkEngine(SparkSettings(**json.loads(sys.argv[1])), slots=1, sql=True)
    session = engine.session()
    _tell({"told": []})
    for line in sys.stdin:
        _tell(_answered(session, json.loads(line)))
    engine.close()


if __name__ == "__main__":
    main()
