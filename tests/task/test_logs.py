"""The log lines of a slot's process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from headrace.observe.log_format import LogForm
from headrace.observe.secret_masking import Secrets
from headrace.task.logs import slot_log

for connector, task in (("d11", 0), ("d12", 1)):
    with slot_log(LogForm(level=logging.INFO, as_json=sys.argv[1] == "json"), connector=connector, task=task):
        logging.getLogger("headrace.task.worker_task").info("It %s", "ended")
        logging.getLogger("headrace.task.worker_task").debug("not this")
with slot_log(
    LogForm(level=logging.INFO, as_json=sys.argv[1] == "json"),
    connector="d13",
    task=0,
    secrets=Secrets(values={"hunter2": "${env:A}"}),
):
    logging.getLogger("a.client").info("no login for %r", {"password": "hunter2"})
print(len(logging.getLogger().handlers))
"""

FOLLOWING = """
import logging
from headrace.observe.log_format import LogForm
from headrace.task.logs import slot_log

one, other = logging.getLogger("an.author"), logging.getLogger("a.client")
other.setLevel(logging.WARNING)
with slot_log(LogForm(level=logging.ERROR, levels={"an": logging.INFO}), connector="c", task=0) as follow:
    one.info("logged"), other.info("not logged"), logging.info("not logged")
    follow(LogForm(level=logging.INFO, levels={"a.client": logging.DEBUG}))
    one.debug("not logged"), other.debug("logged"), logging.info("logged")
    follow(LogForm(level=logging.ERROR))
    one.warning("not logged"), other.warning("logged"), logging.warning("not logged")
print([logging.getLogger(name).level for name in ("root", "an", "an.author", "a.client")])
"""

PRINTING = """
import logging, sys, threading
from headrace.observe.log_format import LogForm
from headrace.observe.secret_masking import Secrets
from headrace.task.logs import slot_log

kept = []
for secret in ("Gehe1mnis-1", "Gehe1mnis-2"):
    secrets = Secrets(values={secret: "${env:A}"})
    with slot_log(LogForm(), connector="c", task=0, secrets=secrets):
        kept.append(sys.stdout)
        print("printed:", {"password": secret})
        print("in", *("halves", secret[:5]), sep=" ", end="")
        print(secret[5:], flush=True)
        print(secret, file=kept[0], end="")
    print("", flush=True)
    with slot_log(LogForm(), connector="c", task=0, secrets=secrets):
        thread = threading.Thread(target=lambda: 1 / 0 if not secret else int(secret))
        thread.start(), thread.join()
print(sys.stdout is sys.__stdout__)
"""


def lines(form: str) -> list[str]:
    """What a process writes in which two slots have run."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, form], capture_output=True, text=True, check=True
    )
    assert "0\n" == ran.stdout
    return ran.stderr.splitlines()


def test_each_line_says_when_and_whose_it_is() -> None:
    """A process is used for one connector after another, and each line tells its own."""
    first, second, _ = lines("words")

    assert "[info     ] It ended [headrace.task.worker_task] connector=d11 task=0" in first
    assert first.startswith("20")
    assert "connector=d12 task=1" in second


def test_lines_are_json_where_the_worker_s_are() -> None:
    """Whoever collects them reads one form."""
    (line, *_) = map(json.loads, lines("json"))

    assert ("It ended", "info", "d11", 0) == tuple(
        line[key] for key in ("message", "level", "connector", "task")
    )
    assert line["timestamp"]


@pytest.mark.parametrize("form", ["words", "json"])
def test_a_line_shows_no_secret_of_the_connector(form: str) -> None:
    """Whoever logs it: it is a client's as well as an author's."""
    *_, line = lines(form)

    assert "no login for {'password': '${env:A}'}" in line


def test_levels_of_the_worker_count_while_a_slot_runs() -> None:
    """Also those of single loggers, those that were changed meanwhile, and none of them afterwards."""
    ran = subprocess.run(
        [sys.executable, "-c", FOLLOWING], capture_output=True, text=True, check=True
    )

    assert ["logged"] * 4 == [
        line.split("] ")[1].split(" [")[0] for line in ran.stderr.splitlines()
    ]
    assert "[30, 0, 0, 30]\n" == ran.stdout


def test_what_is_printed_shows_no_secret() -> None:
    """Word by word, by who has kept the stream of the slot before, or by a thread that ends with an error."""
    ran = subprocess.run(
        [sys.executable, "-c", PRINTING], capture_output=True, text=True, check=True
    )

    expected = ["printed: {'password': '${env:A}'}", "in halves ${env:A}", "${env:A}"]
    assert [*expected, *expected, "True"] == ran.stdout.splitlines()
    assert "Gehe1mnis" not in ran.stderr
    assert 2 == ran.stderr.count("invalid literal for int() with base 10: '${env:A}'")


def test_a_process_with_logging_of_its_own_keeps_it(caplog: pytest.LogCaptureFixture) -> None:
    """The worker's own, where slots are threads of it."""
    import logging

    from headrace.observe.log_format import LogForm
    from headrace.task.logs import slot_log

    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    with slot_log(LogForm(), connector="c", task=0):
        assert before == (list(root.handlers), root.level)
