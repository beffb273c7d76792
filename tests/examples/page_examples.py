"""What a page of the documentation has a reader do, done: its files written, its commands typed.

A block of code is a file where the sentence above it names one and ends with a colon, as in "`orders.json`
sends them:". A block ``console`` is a terminal: behind ``$`` a command, below it what that prints. ``…``
stands for whatever is printed there, and a moment for any moment. A worker that serves runs until the page's end;
what only asks it is typed again until it answers as shown. Anything else on the page is not touched.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headrace.broker import BrokerState
from headrace.broker.folder import write_state
from headrace.jvm.cache import cache_root
from waiting import until

ROOT = Path(__file__).parents[2]
SHOWN_BROKER = "127.0.0.1:9092"
SHOWN_SECOND_PORT = "9192"
SHOWN_WORKER = "localhost:8083"
SHOWN_CONNECT_PORT = "15002"
SHOWN_FOLDER = "/srv"
_BLOCK = re.compile(r"((?:^.+\n)*)\n*^```(\w+)\n((?:.*\n)*?)```$", re.MULTILINE)
_FILE = re.compile(r"`([\w./-]+\.(?:csv|json|jsonl|log|properties|py|sql|txt))`")
_WHEN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00")
_SERVES = re.compile(r"headrace run (?!.*--once)")
_ASKS = re.compile(
    r"curl -s '?localhost\S+$|headrace (connectors (list|status)|explain|offsets (show|history))"
)
_ANSWER_SECONDS = 180.0
# What a page stops at its end, and somebody has to stop when it is wrong before.
_STOPPED_BY = {
    "start-connect-server.sh": 'eval "$(headrace spark env)"; "$SPARK_HOME/sbin/stop-connect-server.sh"',
    "broker start --data .cache/second": "headrace broker stop --data .cache/second",
}
# Commands of one page are one terminal: what one exports, the next one has.
_TERMINAL = """
[ ! -f "$TERMINAL" ] || . "$TERMINAL"
eval "$1"
code=$?
export -p > "$TERMINAL"
exit $code
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file that the page tells the reader to write."""

    name: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A command of the page, and what it prints there."""

    command: str
    printed: str


def steps(page: str) -> Iterator[PageFile | Typed]:
    """What *page* has its reader do, in order; nothing where it has no terminal."""
    if "```console\n" not in page:
        return
    for above, kind, text in _BLOCK.findall(page):
        if kind == "console":
            yield from _typed(text)
        elif (name := _named(above)) is not None:
            yield PageFile(name=name, content=text)


def parts(page: str) -> list[list[PageFile | Typed]]:
    """The same in parts, each up to a file that follows commands; a part begins with the files of those before it."""
    found = list[list[PageFile | Typed]]([[]])
    for step in steps(page):
        if isinstance(step, PageFile) and found[-1] and isinstance(found[-1][-1], Typed):
            found.append([each for each in found[-1] if isinstance(each, PageFile)])
        found[-1].append(step)
    return found


def _typed(text: str) -> Iterator[Typed]:
    for each in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = each.partition("\n")
        yield Typed(command=command, printed=printed.strip())


def _named(above: str) -> str | None:
    """The first file that the last sentence of the paragraph *above* names, if it ends with a colon."""
    sentence = re.split(r"[.!?]\s", above.strip())[-1]
    found = _FILE.search(sentence) if sentence.endswith(":") else None
    return found and found[1]


def matches(shown: str, printed: str) -> bool:
    """Whether *printed* is what is *shown*."""
    form = ".*".join(re.escape(part) for part in _timeless(shown).split("…"))
    return re.fullmatch(form, _timeless(printed).strip(), re.DOTALL) is not None


def _timeless(text: str) -> str:
    return _WHEN.sub("<when>", text)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(kw_only=True)
class Reader:
    """Follows pages in *folder*, as in a clone's root whose environment is activated.

    Ports are free ones in place of the usual ones. With *spark* false, slots run in processes without Spark. There is
    no Java but the packaged one, as on a machine that has Python and nothing else.
    """

    folder: Path
    broker_port: int = field(default_factory=_free_port)
    worker_port: int = field(default_factory=_free_port)
    connect_port: int = field(default_factory=_free_port)
    second_port: int = field(default_factory=_free_port)
    _serving: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    def __post_init__(self) -> None:
        (self.folder / "examples").mkdir(parents=True)
        (self.folder / ".cache").mkdir()
        for path in (ROOT / "examples").glob("*.*"):
            (self.folder / "examples" / path.name).write_text(self._own(path.read_text()))
        self._make_environment()
        self._make_cache()

    def follows(self, steps: Sequence[PageFile | Typed], *, spark: bool = False) -> int:
        """Do all of it; returns how many commands were typed. Raises ``AssertionError`` where the page is wrong."""
        typed = 0
        (self.folder / ".terminal").unlink(missing_ok=True)
        try:
            for step in steps:
                if isinstance(step, PageFile):
                    self._write(step)
                else:
                    self._type(step, spark=spark)
                    typed += 1
        except BaseException:
            for started, stop in _STOPPED_BY.items():
                if any(isinstance(each, Typed) and started in each.command for each in steps):
                    self._run(stop, spark=True)
            raise
        finally:
            self._end_serving()
        return typed

    def types(self, command: str) -> str:
        """Type one *command* that shall succeed; what it prints."""
        code, printed, errors = self._run(command, spark=False)
        assert not code, f"$ {command}\n{printed}{errors}"
        return printed

    def _make_environment(self) -> None:
        """A `.venv` whose `headrace` and `python` are those of the tests."""
        commands = self.folder / ".venv" / "bin"
        commands.mkdir(parents=True)
        python = shlex.quote(sys.executable)
        started = shlex.quote(str(Path(__file__).with_name("typed_headrace.py")))
        for name, call in (("headrace", f"{python} {started}"), ("python", python)):
            (commands / name).write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            (commands / name).chmod(0o755)
        (commands / "activate").write_text(f"export PATH={shlex.quote(str(commands))}:$PATH\n")

    def _make_cache(self) -> None:
        """What was fetched before, and a broker of its own, on its own port."""
        cache = self.folder / ".cache" / "headrace"
        cache.mkdir()
        for name in ("archives", "ivy", "jars", "java", "trust"):
            (cache_root() / name).mkdir(parents=True, exist_ok=True)
            (cache / name).symlink_to(cache_root() / name)
        (cache / "broker").mkdir()
        write_state(
            cache / "broker",
            BrokerState(pid=0, identity="", port=self.broker_port, controller_port=0, log_file=""),
        )

    def _path_without_java(self) -> str:
        """The `PATH` of the tests; a folder with a `java` is one of links to all that is beside it."""
        places = list[str]()
        for number, place in enumerate(os.environ["PATH"].split(os.pathsep)):
            if not (Path(place) / "java").exists():
                places.append(place)
                continue
            beside = self.folder / ".path" / str(number)
            if not beside.exists():
                beside.mkdir(parents=True)
                for each in Path(place).iterdir():
                    if each.name != "java":
                        (beside / each.name).symlink_to(each)
            places.append(str(beside))
        return os.pathsep.join(places)

    def _write(self, file: PageFile) -> None:
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = self._own(file.content)
        # A program's own Kafka client is no worker.
        if '"bootstrap.servers"' in content and "AdminClient(" not in content:
            # The usual port of a worker is somebody else's on a machine that runs tests.
            listeners = f'"listeners": "http://127.0.0.1:{self.worker_port}", '
            content = content.replace("{", f"{{{listeners}", 1)
        path.write_text(content)

    def _type(self, typed: Typed, *, spark: bool) -> None:
        if _SERVES.search(typed.command):
            self._serve(typed.command, spark=spark)
            return
        problem = self._compared(typed, spark=spark)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while problem and _ASKS.match(typed.command) and time.monotonic() < deadline:
            time.sleep(0.2)
            problem = self._compared(typed, spark=spark)
        assert problem is None, f"{problem}\n{self._said_by_workers()}"

    def _said_by_workers(self) -> str:
        """What the workers have logged that still serve, but for their access."""
        log = self.folder / ".served.log"
        lines = log.read_text().splitlines() if self._serving else []
        return "\n".join(each for each in lines if "rest.access" not in each)

    def _compared(self, typed: Typed, *, spark: bool) -> str | None:
        """What is wrong with the page. What fails must be shown; then the errors are part of what is printed."""
        code, printed, errors = self._run(typed.command, spark=spark)
        seen = self._shown(printed + (errors if code else ""))
        if matches(typed.printed, seen) and (typed.printed or not code):
            return None
        return f"$ {typed.command}\n{seen}\nThe page shows:\n{typed.printed}\nErrors:\n{errors}"

    def _run(self, command: str, *, spark: bool) -> tuple[int, str, str]:
        with self._started(command, spark=spark) as process:
            try:
                printed, errors = process.communicate()
            except BaseException:
                # The test's time is over, or it was interrupted: what the command has started ends with it.
                _kill(process)
                raise
        return process.returncode, printed, errors

    def _serve(self, command: str, *, spark: bool) -> None:
        log = self.folder / ".served.log"
        with log.open("w") as stream:
            self._serving.append(self._started(command, spark=spark, output=stream.fileno()))
        until(lambda: "answered at http" in log.read_text(), seconds=60)

    def _end_serving(self) -> None:
        for process in self._serving:
            # To all of the terminal's processes; SIGINT is ignored where the tests run in the background.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                until(lambda each=process: each.poll() is not None and not _lives(each), seconds=30)
            finally:
                _kill(process)
                process.wait()
        self._serving.clear()

    def _started(
        self, command: str, *, spark: bool, output: int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", _TERMINAL, "bash", self._own(command)],
            cwd=self.folder,
            env=self._environment(spark=spark),
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )

    def _environment(self, *, spark: bool) -> dict[str, str]:
        commands = self.folder / ".venv" / "bin"
        inherited = {key: os.environ[key] for key in os.environ if key != "JAVA_HOME"}
        return {
            **inherited,
            "PATH": f"{commands}{os.pathsep}{self._path_without_java()}",
            "TERMINAL": str(self.folder / ".terminal"),
            "HEADRACE_CACHE": str(self.folder / ".cache" / "headrace"),
            "HEADRACE_URL": f"http://127.0.0.1:{self.worker_port}",
            "HEADRACE_TEST_ENGINE": "spark" if spark else "processes",
            "XDG_STATE_HOME": str(self.folder / ".state"),
        }

    def _own(self, text: str) -> str:
        for shown, own in self._places():
            text = text.replace(shown, own)
        return text

    def _shown(self, text: str) -> str:
        for shown, own in self._places():
            text = text.replace(own, shown)
        return text.replace(str(self.folder), SHOWN_FOLDER)

    def _places(self) -> Iterator[tuple[str, str]]:
        yield SHOWN_BROKER, f"127.0.0.1:{self.broker_port}"
        yield SHOWN_WORKER, f"127.0.0.1:{self.worker_port}"
        yield SHOWN_CONNECT_PORT, str(self.connect_port)
        yield SHOWN_SECOND_PORT, str(self.second_port)


def _lives(process: subprocess.Popen[str]) -> bool:
    """Whether anything lives that *process* has started."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
