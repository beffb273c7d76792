"""The requests of the README, typed as they stand there against a real worker: they answer what it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.testing.judge import committed_records
from headrace.testing.waiting import until

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = re.split(r"^## ", README, flags=re.MULTILINE)[
    [each.split("\n")[0] for each in re.split(r"^## ", README, flags=re.MULTILINE)].index(
        "From Kafka Connect, with curl"
    )
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A command of the page and what it printed there."""

    command: str
    printed: str


def block(kind: str) -> str:
    """The section's first block of that kind."""
    found = re.search(rf"```{kind}\n(.*?)```", SECTION, re.DOTALL)
    assert found is not None
    return found[1]


def typed() -> list[Typed]:
    """Every command of the section, in order."""
    blocks = re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)
    commands = [each for text in blocks for each in text.removeprefix("$ ").split("\n$ ")]
    return [
        Typed(command=command, printed=printed.strip())
        for command, _, printed in (each.partition("\n") for each in commands)
    ]


def timeless(text: str) -> str:
    """*text* without the moments that it tells."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00", "<when>", text).strip()


@contextmanager
def worker(folder: Path, bootstrap: str) -> Iterator[str]:
    """A worker with the README's configuration, on a free port; its address."""
    told = re.search(r"```json\n(\{\"bootstrap.*?)\n```", README)
    assert told is not None
    config = {**json.loads(told[1]), "bootstrap.servers": bootstrap}
    config |= {"listeners": "http://127.0.0.1:0", "state.file": "worker.db"}
    (folder / "worker.json").write_text(json.dumps(config))
    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "run", "worker.json"], cwd=folder, stderr=stream
        )
    try:
        answered = re.compile(r"answered at http://(127\.0\.0\.1:\d+)/")
        until(lambda: answered.search(log.read_text()), seconds=60)
        yield answered.findall(log.read_text())[0]
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(60), log.read_text()
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Types commands of the page in *folder*, for a worker at *address* and with a topic of the test's own."""

    folder: Path
    address: str
    topic: str

    def shows(self, each: Typed) -> bool:
        """Whether the command prints what the page shows."""
        own = each.command.replace("localhost:8083", self.address)
        own = own.replace("headrace ", f"{shlex.quote(sys.executable)} -m headrace ", 1)
        done = subprocess.run(
            ["bash", "-c", own],
            cwd=self.folder,
            env={**os.environ, "HEADRACE_URL": f"http://{self.address}"},
            capture_output=True,
            text=True,
        )
        expected = each.printed.replace('"topic":"orders"', f'"topic":"{self.topic}"')
        return timeless(expected) == timeless(done.stdout)


def test_the_readme_creates_presets_alters_and_undoes():
    """Its commands are what the section promises, and the table's what the history holds."""
    commands = [each.command for each in typed()]

    assert ["-d @orders.json", "/stop", "-X PATCH", "history", "/undo", "/resume"] == [
        part
        for part in ("-d @orders.json", "/stop", "-X PATCH", "history", "/undo", "/resume")
        if any(part in each for each in commands)
    ]
    assert '"initial_offsets"' in block("json")


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(420)
@pytest.mark.skipif(shutil.which("curl") is None, reason="The README's commands are curl's.")
def test_the_readme_shows_what_a_worker_answers(bootstrap: str, tmp_path: Path):
    """Each command prints what is shown, and only what lies behind the preset offset is in Kafka, once."""
    topic = f"readme-{uuid.uuid4().hex[:8]}"
    (tmp_path / "orders.txt").write_text(block("text"))
    posted = block("json").replace('"topic": "orders"', f'"topic": "{topic}"')
    (tmp_path / "orders.json").write_text(posted)
    with worker(tmp_path, bootstrap) as address:
        terminal = Terminal(folder=tmp_path, address=address, topic=topic)
        for each in typed():
            if each.command.endswith("/offsets"):
                # How soon records are sent is up to Spark's start.
                until(lambda each=each: terminal.shows(each), seconds=180)
            else:
                assert terminal.shows(each), each.command

    found = [record.value for record in committed_records(bootstrap, topic)]
    assert [b"rice 1", b"salt 7"] == found
