"""Every check of the project, side by side; with arguments, which go to pytest, one after the other."""

from __future__ import annotations

import os
import random
import re
import runpy
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any

from children import catch_signals, ending_together, run, start
from headrace.broker import Broker
from headrace.connect.errors import ConnectError

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
ALL, SEED, BOOTSTRAP = "--all", "HEADRACE_SEED", "HEADRACE_TEST_BOOTSTRAP"
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"
STATIC = {
    "formatting": [PYTHON, "-m", "ruff", "format", "--check", "."],
    "lint": [PYTHON, "-m", "ruff", "check", "."],
    "import rules": [PYTHON, "-c", LINT_IMPORTS, "--no-cache"],
    "types": [PYTHON, "-m", "pyright", "--pythonpath", PYTHON],
}
PYTEST = [PYTHON, "-m", "pytest", "-q", "--durations=25", "--durations-min=5"]
LIGHT = "light"
# The lanes of tests/project/lanes.py, of tests that need a service; the longest first.
REAL = ("scenes", "parts", "session", "clusters")
# With all cases of the kill matrices, most of which are scenes: these in parts, so that no processor waits for the last lane.
REAL_WITH_ALL = (
    "scenes:1/4",
    "session",
    "scenes:2/4",
    "scenes:3/4",
    "scenes:4/4",
    "parts",
    "clusters",
)
# More of them at once end no sooner, but each test takes longer, and what has time-outs has them.
AT_ONCE = max(2, os.cpu_count() or 2) + 1
# The broker of ./check is as the one that a test starts for itself.
BROKER = runpy.run_path(str(ROOT / "tests" / "project" / "brokers.py"))["PROPERTIES"]
# Brokers that live for minutes are better off without the optimising compiler, which takes as much as all they do.
QUICK_JVM = {"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
# Beside all others on two slow cores, the longest took half of this.
LIMIT_SECONDS = 120
# What only computes gives way to what has time-outs.
NICE = 10
LOOK_SECONDS, SIGN_OF_LIFE_SECONDS = 0.1, 60.0
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)")
_CLOSING = re.compile(
    r"^=*\s?(\d+ (?:passed|failed|skipped|error|deselected).* in [\d.]+s.*?)=*$", re.MULTILINE
)
_MATRICES = re.compile(r"^kill matrices: (\d+) of (\d+) cases", re.MULTILINE)
_AFTER_TESTS = re.compile(r"^=+ slowest .*", re.MULTILINE | re.DOTALL)
_PERCENT = re.compile(rb"\[ *(\d+%)\]")


class Step:
    """One program, from its start to its end, and its output."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        nice: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.seconds = 0.0
        self.printed = ""
        self._command = command
        self._began = time.monotonic()
        self._output: IO[str] = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (open until its end)
        self.child = start(command, cwd=ROOT, output=self._output, nice=nice, env=env)

    def has_ended(self) -> bool:
        """Whether it has; if so, how it went is printed, with its output when it failed."""
        code = self.child.poll()
        if code is None:
            return False
        self.seconds = time.monotonic() - self._began
        self._read()
        print(f"{self.name}: {'FAILED' if code else 'ok'} ({self.seconds:.1f} s)", flush=True)
        if code:
            print(self.printed, flush=True)
            print(f"To run this alone: {subprocess.list2cmdline(self._command)}", flush=True)
        elif found := _AFTER_TESTS.search(self.printed):
            print(found.group(), flush=True)
        return True

    def progress(self) -> str:
        """Its name, and how far its tests are."""
        number = self._output.fileno()
        begin = max(0, os.fstat(number).st_size - 400)
        percents = _PERCENT.findall(os.pread(number, 400, begin))
        return f"{self.name} {percents[-1].decode()}" if percents else self.name

    def show_unfinished(self) -> None:
        """Print its output up to the interruption."""
        if not self.seconds and self._read():
            print(f"{self.name}: interrupted\n{self.printed}", flush=True)

    @property
    def closing(self) -> str:
        """Pytest's own closing line, if it came to one."""
        lines = _CLOSING.findall(self.printed)
        return lines[-1].strip() if lines else ""

    @property
    def counts(self) -> Counter[str]:
        """How many tests passed, failed and were skipped; one whose fixture failed has failed."""
        found = Counter({kind: int(number) for number, kind in _COUNT.findall(self.closing)})
        found["failed"] += found.pop("error", 0)
        return found

    @property
    def matrices(self) -> tuple[int, int]:
        """How many cases of kill matrices it has played, and of how many."""
        found = _MATRICES.search(self.printed)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def _read(self) -> str:
        self._output.seek(0)
        self.printed = self._output.read()
        return self.printed


def main() -> None:
    """Run all of them, also after one has failed; the exit code is 1 when one has."""
    catch_signals()
    arguments = [each for each in sys.argv[1:] if each != ALL]
    given = os.environ.pop(SEED, "")
    seed = given or str(random.randrange(10**6))
    if not seed.isdecimal():
        sys.exit(f"{SEED}={seed} is not a number.")
    if ALL in sys.argv:
        print(
            "Every case of the kill matrices is played: an hour and a half on two cores.",
            flush=True,
        )
    elif given or not arguments:
        # Whoever finds it there plays a share.
        os.environ[SEED] = seed
    real = REAL_WITH_ALL if ALL in sys.argv else REAL
    failed = one_by_one(arguments, seed) if arguments else side_by_side(seed, real)
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")
    print("All checks passed.")


def seeded(seed: str) -> list[str]:
    """Pytest's arguments for the order of tests and what `random` gives them, and for what hypothesis draws."""
    return [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}"]


def one_by_one(arguments: Sequence[str], seed: str) -> list[str]:
    """The static checks, and then a pytest of these *arguments*; the names of what failed."""
    failed = list[str]()
    for name, command in STATIC.items():
        with ending_together() as children:
            failed += ended([begun(children, name, command)])
    print(f"tests, with {' '.join(seeded(seed))}:", flush=True)
    return [*failed, "tests"] if run([*PYTEST, *seeded(seed), *arguments], cwd=ROOT) else failed


def side_by_side(seed: str, lanes: Sequence[str]) -> list[str]:
    """Everything, on a broker that all tests share, several programs at once; the names of what failed."""
    began, failed, tests = time.monotonic(), list[str](), list[Step]()
    os.environ.update(QUICK_JVM)
    limited = [*PYTEST, *seeded(seed), "--refuse-above", str(LIMIT_SECONDS), "--lane"]
    try:
        with ExitStack() as services, ending_together() as children:

            def steps(names: Iterable[str], **how: Any) -> Iterator[Step]:  # noqa: ANN401
                for name in names:
                    tests.append(begun(children, name, [*limited, name], **how))
                    yield tests[-1]

            quiet = [*steps([LIGHT], nice=NICE)]
            quiet += [begun(children, *each, nice=NICE) for each in STATIC.items()]
            real = steps(())
            try:
                env = {BOOTSTRAP: os.environ.get(BOOTSTRAP) or own_broker(services)}
            except ConnectError as error:
                print(f"The broker that tests share cannot be started: {error}", flush=True)
                failed.append("broker")
            else:
                real = steps(lanes, env=env)
            failed += ended(quiet, real)
    except BaseException:
        for each in tests:
            each.show_unfinished()
        raise
    sum_up(tests, time.monotonic() - began, seed)
    return failed


def begun(
    children: list[subprocess.Popen[bytes]],
    name: str,
    command: Sequence[str],
    *,
    nice: int = 0,
    env: Mapping[str, str] | None = None,
) -> Step:
    """A step whose program has begun, and is among *children*."""
    step = Step(name, command, nice=nice, env=env)
    children.append(step.child)
    return step


def own_broker(services: ExitStack) -> str:
    """The address of a broker that ends with *services*."""
    folder = services.enter_context(tempfile.TemporaryDirectory(prefix="headrace-check-"))
    return services.enter_context(Broker(Path(folder), properties=BROKER)).bootstrap


def ended(steps: Sequence[Step], lanes: Iterable[Step] = ()) -> list[str]:
    """Wait until all have, and *lanes*, of which a few are taken at once, and begin then; the names of those that failed."""
    coming, failed, last = iter(lanes), list[str](), time.monotonic()
    running = [*steps, *islice(coming, AT_ONCE)]
    while running:
        over = [each for each in running if each.has_ended()]
        running = [each for each in running if each not in over]
        running += islice(coming, sum(each not in steps for each in over))
        failed += [each.name for each in over if each.child.returncode]
        if running and time.monotonic() - last > SIGN_OF_LIFE_SECONDS:
            last = time.monotonic()
            print("running:", ", ".join(each.progress() for each in running), flush=True)
        time.sleep(LOOK_SECONDS)
    return failed


def sum_up(tests: Sequence[Step], seconds: float, seed: str) -> None:
    """Print how long each lane took, how much was played of the kill matrices, and how many tests passed."""
    took = ", ".join(f"{each.name} {each.seconds:.0f} s" for each in tests)
    print(f"{took}; everything {seconds:.0f} s.")
    played, there = (sum(each.matrices[at] for each in tests) for at in (0, 1))
    again = f"the same again: {SEED}={seed} ./check"
    more = "; all of them: ./check --all" if SEED in os.environ else f" {ALL}"
    print(f"kill matrices: {played} of {there} cases; {again}{more}")
    counts = Counter[str]()
    for each in tests:
        counts += each.counts
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "failed", "skipped")))


if __name__ == "__main__":
    main()
