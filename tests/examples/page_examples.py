"""What a page of the documentation has a reader do, done: its files written, its commands typed.

A block of code is a file where the sentence above it names one and ends with a colon, as in "`orders.json`
sends them:". A block ``console`` is a terminal: behind ``$`` a command, below it what that prints. ``…``
stands for whatever is printed there. Anything else on the page is not touched.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN_BROKER = "127.0.0.1:9092"
SHOWN_FOLDER = "/srv"
_BLOCK = re.compile(r"((?:^.+\n)*)\n*^```(\w+)\n((?:.*\n)*?)```$", re.MULTILINE)
_FILE = re.compile(r"`([\w./-]+\.(?:csv|json|jsonl|log|properties|py|sql|txt))`")


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
    form = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(form, printed.strip(), re.DOTALL) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Does it in *folder*, with a Kafka broker at *bootstrap*."""

    folder: Path
    bootstrap: str

    def follows(self, page: str) -> int:
        """Do all of it; returns how many commands were typed. Raises ``AssertionError`` where the page is wrong."""
        self._settle()
        typed = 0
        for step in steps(page):
            if isinstance(step, PageFile):
                self._write(step)
            else:
                self._type(step)
                typed += 1
        return typed

    def _settle(self) -> None:
        """Make `headrace`, `python` and `examples/` what they are in the clone's root."""
        (self.folder / "examples").mkdir()
        for path in (ROOT / "examples").glob("*.*"):
            (self.folder / "examples" / path.name).write_text(self._own(path.read_text()))
        commands = self.folder / ".commands"
        commands.mkdir()
        python = shlex.quote(sys.executable)
        for name, call in (("headrace", f"{python} -m headrace"), ("python", python)):
            (commands / name).write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            (commands / name).chmod(0o755)

    def _write(self, file: PageFile) -> None:
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._own(file.content))

    def _type(self, typed: Typed) -> None:
        """What fails must be shown; then the errors are part of what is printed."""
        command = ["bash", "-c", self._own(typed.command)]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                printed, errors = process.communicate()
            except BaseException:
                # The test's time is over, or it was interrupted: what the command has started ends with it.
                os.killpg(process.pid, signal.SIGKILL)
                raise
        self._compare(typed, printed, errors, failed=process.returncode != 0)

    def _compare(self, typed: Typed, printed: str, errors: str, *, failed: bool) -> None:
        seen = self._shown(printed + (errors if failed else ""))
        is_right = matches(typed.printed, seen) and (typed.printed or not failed)
        assert is_right, (
            f"$ {typed.command}\n{seen}\nThe page shows:\n{typed.printed}\nErrors:\n{errors}"
        )

    def _environment(self) -> dict[str, str]:
        path = f"{self.folder / '.commands'}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "XDG_STATE_HOME": str(self.folder / ".state")}

    def _own(self, text: str) -> str:
        return text.replace(SHOWN_BROKER, self.bootstrap)

    def _shown(self, text: str) -> str:
        return text.replace(self.bootstrap, SHOWN_BROKER).replace(str(self.folder), SHOWN_FOLDER)
