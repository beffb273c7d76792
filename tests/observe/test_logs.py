"""Events as log lines."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import get_args

import pytest

from headrace.observe import event_log
from headrace.observe.event_log import EventLog
from headrace.observe.events import (
    ConnectorIdle,
    ConnectorStopped,
    Event,
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    Resumed,
    SlotClaimed,
    SlotProgress,
    TaskCounts,
    TaskFailed,
    Waiting,
    to_all,
)
from headrace.observe.log_format import (
    FormHandler,
    LogForm,
    configure_logging,
    form_in_use,
    hide_in_logs,
    in_log_context,
    name_in_logs,
    named_form,
    naming_in_logs,
    worker_in_logs,
)
from headrace.observe.log_levels import own_levels

_WAITING = Waiting(connector="c", reason="no slots")
Lines = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def root_logger_kept() -> Iterator[None]:
    """The root logger is as it was after each test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.fixture(params=[False, True], ids=["text", "json"])
def logged_lines(request: pytest.FixtureRequest) -> Lines:
    """What has been logged so far, in either form."""
    stream = io.StringIO()
    configure_logging(as_json=request.param, stream=stream)
    return lambda: stream.getvalue().splitlines()


def test_a_healthy_idle_system_logs_nothing(logged_lines: Lines):
    """Neither looking for work nor working at it is news."""
    log_event = EventLog()
    for event in (
        ConnectorIdle(connector="c"),
        MicroBatchStarted(connector="c", slots=1),
        SlotClaimed(connector="c", task=0, pid=1, host="h"),
        SlotProgress(connector="c", records=1, bytes=1, committed_records=0, committed_bytes=0),
    ):
        log_event(event)
    assert [] == logged_lines()


def test_what_only_metrics_need_is_not_logged(caplog: pytest.LogCaptureFixture):
    """A line of progress has the sums of all tasks."""
    caplog.set_level(logging.DEBUG)
    counts = {"records": 7, "bytes": 1, "committed_records": 0, "committed_bytes": 0}

    EventLog()(SlotProgress(connector="c", tasks=(TaskCounts(task=0),), **counts))

    (line,) = caplog.records
    assert "records=7" in line.getMessage()
    assert "tasks" not in line.getMessage()


def test_waiting_is_reported_once_per_reason(logged_lines: Lines):
    """The same reason again is silent until work went on in between."""
    log_event = EventLog()
    other = Waiting(connector="c", reason="no broker")
    for event in (_WAITING, _WAITING, other, ConnectorIdle(connector="c"), other):
        log_event(event)
    assert 3 == len([line for line in logged_lines() if "has to wait" in line])


def test_a_wait_of_all_connectors_is_reported_once(logged_lines: Lines):
    """For one of them, and again when that one has gone on, or has ended."""
    log_event = EventLog()
    waits = [Waiting(connector=name, reason="no group", is_shared=True) for name in "abc"]
    log_event(Replanned(connector="a", reason="no group", is_shared=True))
    other = Waiting(connector="b", reason="no broker")

    def told(*given: Event) -> int:
        before = len(logged_lines())
        for each in given:
            log_event(each)
        return len([line for line in logged_lines()[before:] if "no group" in line])

    assert [] == logged_lines()
    assert 1 == told(*waits, *waits, other, ConnectorIdle(connector="b"), waits[1])
    assert 1 == told(ConnectorIdle(connector="a"), waits[1], waits[0], waits[2])
    assert 1 == told(ConnectorStopped(connector="b"), waits[2], waits[0])
    assert not any("is_shared" in line for line in logged_lines())


def test_an_outage_takes_few_lines(logged_lines: Lines):
    """However many sentences it has, and however often work starts between them; a minute later there is another one."""
    now = [0.0]
    log_event = EventLog(clock=lambda: now[0])
    for second in range(180):
        now[0] = float(second)
        log_event(Waiting(connector="c", reason=f"no answer in place {second}"))
        log_event(Replanned(connector="c", reason=f"no answer in place {second}"))
        log_event(MicroBatchStarted(connector="c", slots=1))

    lines = [line for line in logged_lines() if "resumes" not in line]
    assert 3 + 2 == len(lines)
    assert "no answer in place 0" in lines[0]


def test_a_wait_that_lasts_is_told_again_after_ten_minutes(logged_lines: Lines):
    """And not before, by the same sentence."""
    now = [0.0]
    log_event = EventLog(clock=lambda: now[0])
    for now[0] in range(0, 1201, 10):
        log_event(_WAITING)

    assert 3 == len(logged_lines())


def test_micro_batches_in_the_background_are_not_logged(caplog: pytest.LogCaptureFixture):
    """But those with bad records are, and those of other connectors in a run that has an end."""
    caplog.set_level(logging.INFO)
    log_event = EventLog({"heartbeats"}, has_end=True)
    log_event(MicroBatchEnded(connector="heartbeats", committed_records=6))
    log_event(MicroBatchEnded(connector="heartbeats", committed_records=6, skipped=1))
    log_event(MicroBatchEnded(connector="c", committed_records=6))

    assert ["heartbeats", "c"] == [vars(each)["connector"] for each in caplog.records]


@pytest.mark.parametrize(("level", "count"), [(logging.INFO, 0), (logging.DEBUG, 1)])
def test_micro_batches_of_a_worker_that_serves_are_logged_at_debug_level(
    caplog: pytest.LogCaptureFixture, level: int, count: int
):
    """A connector with a trickle of records has several a second."""
    caplog.set_level(level)
    EventLog()(MicroBatchEnded(connector="c", committed_records=5))
    assert count == len(caplog.messages)


def test_that_connectors_take_turns_is_reported_once(caplog: pytest.LogCaptureFixture):
    """More connectors than slots are no fault: not a warning, and not a line for each of them."""
    caplog.set_level(logging.INFO)
    log_event = EventLog()
    for name in "abcba":
        log_event(Queued(connector=name, slots=1))
        log_event(MicroBatchStarted(connector=name, slots=1))
    (line,) = caplog.records
    assert logging.INFO == line.levelno
    assert "take turns" in line.getMessage()


@pytest.mark.parametrize(
    "event",
    [
        Resumed(connector="c"),
        ConnectorIdle(connector="c"),
        MicroBatchStarted(connector="c", slots=1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_the_end_of_a_wait_is_reported_once(logged_lines: Lines, event: Event):
    """And nothing where no one waited."""
    log_event = EventLog()
    for each in (event, Waiting(connector="d", reason="no slots"), _WAITING, event, event):
        log_event(each)
    (line,) = (line for line in logged_lines() if "connector resumes" in line)
    assert "connector=c" in line or '"connector": "c"' in line


def test_plain_logging_shows_the_reason(caplog: pytest.LogCaptureFixture):
    """Programs that run a worker inside themselves mostly show a record's message only."""
    caplog.set_level(logging.INFO)
    EventLog()(_WAITING)
    EventLog()(TaskFailed(connector="c", task=0, reason="bad", trace="Traceback:\n  line 1"))
    EventLog(has_end=True)(MicroBatchEnded(connector="c", committed_records=5))
    assert [
        "The connector has to wait (connector=c): no slots",
        "A task has failed (connector=c, task=0): bad\nTraceback:\n  line 1",
        "A micro-batch has ended (connector=c, committed_records=5)",
    ] == caplog.messages


def test_a_micro_batch_that_brought_nothing_is_reported_at_debug_level_only(
    caplog: pytest.LogCaptureFixture,
):
    """A polled connector that is idle has one every half a minute, and a healthy idle worker logs nothing."""
    caplog.set_level(logging.INFO)
    EventLog(has_end=True)(MicroBatchEnded(connector="c", committed_records=0))
    assert [] == caplog.messages


def test_what_was_passed_over_is_shown(caplog: pytest.LogCaptureFixture):
    """Whatever errors.log.enable is, their number is in the log."""
    caplog.set_level(logging.INFO)
    EventLog()(MicroBatchEnded(connector="c", committed_records=5, dead_lettered=2))
    EventLog()(MicroBatchEnded(connector="c", committed_records=5, skipped=3))
    assert [
        "A micro-batch has ended (connector=c, committed_records=5, dead_lettered=2)",
        "A micro-batch has ended (connector=c, committed_records=5, skipped=3)",
    ] == caplog.messages


def test_a_reason_is_shown_once(logged_lines: Lines):
    """As a field, not in the message as well."""
    EventLog()(_WAITING)
    (line,) = logged_lines()
    assert 1 == line.count("no slots")
    assert "words" not in line


def test_the_form_in_use_is_reported():
    """The worker's slots log in it, too."""
    configure_logging("DEBUG", as_json=True, stream=io.StringIO())
    own = own_levels()
    assert LogForm(level=logging.DEBUG, as_json=True, levels=own) == form_in_use()
    logging.getLogger().handlers[:] = [logging.NullHandler()]
    assert LogForm(level=logging.DEBUG, levels=own) == form_in_use()


def test_a_line_has_words_and_fields():
    """People read words first, programs find every field."""
    text, structured = io.StringIO(), io.StringIO()
    for stream, as_json in ((text, False), (structured, True)):
        configure_logging(as_json=as_json, stream=stream)
        EventLog(has_end=True)(MicroBatchEnded(connector="c", committed_records=5))
    assert "[info     ] A micro-batch has ended" in text.getvalue()
    assert "connector=c" in text.getvalue()
    line = json.loads(structured.getvalue())
    assert ("A micro-batch has ended", "c", 5) == (
        line["message"],
        line["connector"],
        line["committed_records"],
    )


def test_a_traceback_is_readable():
    """The trace of a failed task keeps its lines."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    EventLog()(TaskFailed(connector="c", task=0, reason="bad", trace="Traceback:\n  line 1"))
    assert "  line 1" in stream.getvalue().splitlines()


COMMAND = """headrace offsets set 'my mirror' '{"partition": 0}' '{"offset": "it\\'s"}'"""


def test_a_command_in_a_reason_can_be_copied():
    """It stands on a line of its own as it is to be typed; nothing in a reason begins a line of the log, or reaches a terminal."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    reason = f"t-0 has stopped:\n{COMMAND}\n2026 forged \x1b[2J"
    EventLog()(TaskFailed(connector="c", task=0, reason=reason, trace="Traceback:\n  line 1"))

    first, *others = stream.getvalue().splitlines()
    assert "reason=" not in first
    assert first.endswith("connector=c task=0")
    assert [
        "    t-0 has stopped:",
        f"    {COMMAND}",
        r"    2026 forged \x1b[2J",
        "Traceback:",
        "  line 1",
    ] == others


def test_a_reason_that_is_not_escaped_stays_in_its_line():
    """And an object of JSON has it as a field, whatever it is."""
    text, structured = io.StringIO(), io.StringIO()
    configure_logging(stream=text)
    EventLog()(Waiting(connector="c", reason="no broker 'b' answers"))
    configure_logging(as_json=True, stream=structured)
    EventLog()(Waiting(connector="c", reason=COMMAND))

    assert text.getvalue().endswith("""connector=c reason="no broker 'b' answers"\n""")
    assert COMMAND == json.loads(structured.getvalue())["reason"]


def test_other_loggers_come_out_in_the_same_form(logged_lines: Lines):
    """Plain records of any logger are lines like events."""
    EventLog()(Replanned(connector="c", reason="refused"))
    logging.getLogger("elsewhere").warning("Something %s", "happened")
    assert 2 == len(logged_lines())
    assert "Something happened" in logged_lines()[-1]


def test_every_event_has_a_line():
    """Every event can be logged."""
    assert set(get_args(Event)) == set(event_log._LINES)


def test_listeners_are_reported_in_order():
    """One event goes to all."""
    heard: list[tuple[str, Event]] = []
    log_event = to_all(lambda e: heard.append(("first", e)), lambda e: heard.append(("second", e)))
    log_event(_WAITING)
    assert [("first", _WAITING), ("second", _WAITING)] == heard


@pytest.mark.parametrize("as_json", [True, False])
def test_json_lines_report_whose_they_are(*, as_json: bool):
    """Once the worker has an id, in its tasks' processes as well; words are for a terminal of one worker."""
    stream = io.StringIO()
    configure_logging(as_json=as_json, stream=stream)
    logging.getLogger("x").warning("before")
    name_in_logs("host:8083")
    EventLog()(_WAITING)

    before, line = stream.getvalue().splitlines()
    assert "host" not in before
    assert as_json == ('"worker": "host:8083"' in line)
    assert "host:8083" == form_in_use().worker


@pytest.mark.parametrize("as_json", [True, False])
def test_lines_of_several_workers_in_one_process_say_whose_they_are(*, as_json: bool):
    """Those of a thread that was started by one, and of its slots, too; nobody else's."""
    stream = io.StringIO()
    configure_logging(as_json=as_json, stream=stream)
    log = logging.getLogger("x")
    with naming_in_logs("A->B"):
        log.warning("one")
        thread = threading.Thread(target=in_log_context(lambda: log.warning("two")))
        thread.start()
        thread.join()
        form = named_form(worker_in_logs())()
    log.warning("three")
    slot = FormHandler(form, stream)
    slot.emit(logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "four"}))

    named = '"worker": "A->B"' if as_json else "worker=A->B"
    assert [True, True, False, True] == [named in line for line in stream.getvalue().splitlines()]
    assert form_in_use() == named_form(worker_in_logs())()


@pytest.mark.parametrize("field", ["reason", "trace", "message", "exception"])
def test_a_long_value_is_cut_and_its_length_reported(field: str, logged_lines: Lines):
    """Its beginning and its end stay, in which no half of a secret is."""
    secret = "Gehe1mnis-" + 100 * "7"
    hide_in_logs({secret: "${a:b}"})
    value = "begin " + 8160 * "." + secret + 1_000_000 * "." + " end"
    if field == "message":
        logging.getLogger("x").warning("%s", value)
    elif field == "exception":
        logging.getLogger("x").warning("it broke", exc_info=ValueError(value))
    else:
        texts = {"reason": "", field: value}
        EventLog()(TaskFailed(connector="c", task=0, **texts))

    shown = "\n".join(logged_lines())
    assert len(shown) < 20_000
    assert " characters are left out" in shown
    assert "begin ..." in shown
    assert "... end" in shown
    assert "Gehe1mnis" not in shown


class Terminal(io.StringIO):
    """What is printed for people."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(("wish", "is_coloured"), [("1", False), ("", True)])
def test_a_terminal_without_colours_gets_none(
    monkeypatch: pytest.MonkeyPatch, wish: str, *, is_coloured: bool
):
    """Without colours if the variable NO_COLOR is set, as in other programs; an empty one has no effect."""
    monkeypatch.setenv("NO_COLOR", wish)
    terminal = Terminal()
    configure_logging(stream=terminal)
    EventLog()(_WAITING)

    assert is_coloured == ("\x1b" in terminal.getvalue())
