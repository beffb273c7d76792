"""What is hidden is found in every form, and what is raised without it stays what it is."""

from __future__ import annotations

import html
import io
import json
import logging
import traceback
from collections.abc import Iterator
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import pytest

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.observe.events import ConnectorFailed, Event, TopicsWritten
from headrace.observe.log_format import as_logged, configure_logging, hide_in_logs
from headrace.observe.secret_masking import (
    Secrets,
    masked_exceptions,
    masking_listener,
    without_secrets,
)

SECRET = 'it\'s "ö"\n  second-line of it\\'
ODD = "CaN4ry@p/w+rdö *~"
MARKED = """<a&b> 'ö' "c" \\"""
SECRETS = Secrets(values={SECRET: "${a:b}"})


@pytest.fixture
def _own_logging() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        repr({"a": SECRET}),
        json.dumps({"a": SECRET}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        json.dumps(repr({"a": SECRET})),
        "only second-line of it\\ was printed",
    ],
)
def test_a_secret_is_found_however_it_is_quoted(text: str):
    """And in its lines, which may be printed one by one."""
    masked = SECRETS.masked(text)

    assert "${a:b}" in masked
    assert "second-line" not in masked


@pytest.mark.parametrize(
    "escaped",
    [
        html.escape(MARKED),
        html.escape(MARKED, quote=False),
        escape(MARKED, {"'": "&apos;", '"': "&quot;"}),
        escape(MARKED, {"'": "&#39;", '"': "&#34;"}),
    ],
)
def test_a_secret_is_found_in_marked_up_text(escaped: str):
    """Such as an object store's answer, also where it is quoted in turn."""
    secrets = Secrets(values={MARKED: "${a:b}"})

    assert "<Key>${a:b}</Key>" == secrets.masked(f"<Key>{escaped}</Key>")
    assert '"${a:b}"' == secrets.masked(json.dumps(escaped), as_json=True)


@pytest.mark.parametrize(
    "encoded",
    [
        quote(ODD),
        quote(ODD, safe=""),
        quote_plus(ODD),
        # JavaScript's encodeURIComponent and encodeURI, and Java's URLEncoder.
        quote(ODD, safe="!'()*"),
        quote(ODD, safe="!'()*;/?:@&=+$,#"),
        quote_plus(ODD, safe="*").replace("~", "%7E"),
        "CaN4ry%40p%2fw%2brd%c3%b6%20%2a%7e",
    ],
)
def test_a_secret_is_found_in_an_address(encoded: str):
    """However much of it the encoder leaves as it is, and in whichever case it writes bytes."""
    secrets = Secrets(values={ODD: "${a:b}"})

    assert "http://b?prefix=${a:b}&x=1" == secrets.masked(f"http://b?prefix={encoded}&x=1")
    assert '{"a": "${a:b}"}' == secrets.masked(json.dumps({"a": encoded}), as_json=True)


def test_a_secret_list_is_found_as_kafka_shows_lists():
    """Also where its items alone are too short to be secrets."""
    assert "[${a:b}]" == Secrets(values={"one,two": "${a:b}"}).masked("[one, two]")


def test_half_a_character_can_be_hidden():
    """Requests may hold one, and no encoder of addresses takes it."""
    assert "a ${a:b}" == Secrets(values={"\ud800secret": "${a:b}"}).masked("a \ud800secret")


def test_what_is_too_short_to_be_a_secret_stays():
    """Every sentence has a 1, and every list a true."""
    assert "1 of 10" == Secrets(values={"1": "${a:b}", " ": "x", "": "y"}).masked("1 of 10")


def test_the_longest_secret_wins():
    """One may begin as another does."""
    secrets = Secrets(values={"open": "A", "open-sesame": "B"})

    assert "B A" == secrets.masked("open-sesame open")


def test_a_json_line_stays_json():
    """Though what is shown has quotes in it."""
    line = Secrets(values={"hunter2": 'a"b\\'}).masked('{"a": "hunter2"}', as_json=True)

    assert {"a": 'a"b\\'} == json.loads(line)


def test_an_error_keeps_its_type_and_loses_the_secret():
    """With all that it came from, and what is left of its own."""

    def fail() -> None:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise RetriableError(f"not {SECRET}", delay_seconds=3) from error

    with pytest.raises(RetriableError) as raised, masked_exceptions(SECRETS):
        fail()

    assert ("not ${a:b}", 3) == (str(raised.value), raised.value.delay_seconds)
    trace = "".join(traceback.format_exception(raised.value))
    assert "KeyError" in trace
    assert "second-line" not in trace


def test_an_error_that_cannot_lose_the_secret_is_reported_by_another():
    """A file's name is more than the words of its error."""
    secrets = Secrets(values={"hunter2": "${a:b}"})
    shown = without_secrets(secrets, FileNotFoundError(2, "No such file", "/hunter2"))

    assert isinstance(shown, TaskFailedError)
    assert "[Errno 2] No such file: '/${a:b}'" == str(shown)


def test_an_error_without_secrets_is_left_alone():
    """It is the same object, with the same words."""
    error = ConnectError("all is well")

    assert error is without_secrets(SECRETS, error)
    assert ("all is well",) == error.args


def test_listeners_get_no_secret_and_work_with_names():
    """A topic's name stays, because records are in it."""
    heard = list[Event]()
    log_event = masking_listener(heard.append, Secrets(values={"hunter2": "${a:b}"}))
    log_event(ConnectorFailed(connector="hunter2", reason="hunter2!", trace="x hunter2"))
    log_event(TopicsWritten(connector="c", topics=("hunter2",)))

    assert [
        ConnectorFailed(connector="hunter2", reason="${a:b}!", trace="x ${a:b}"),
        TopicsWritten(connector="c", topics=("hunter2",)),
    ] == heard


@pytest.mark.usefixtures("_own_logging")
@pytest.mark.parametrize("as_json", [False, True])
def test_no_log_line_shows_what_is_hidden(as_json: bool):  # noqa: FBT001 (a parameter of a test)
    """Not in its words, not in its fields, not in its traceback; a line of before stays as it was."""
    stream = io.StringIO()
    configure_logging(as_json=as_json, stream=stream)
    log = logging.getLogger("x")
    log.warning("hunter1")
    hide_in_logs({"hunter1": "${a:1}"})
    hide_in_logs({"hunter2": "${a:2}"})
    try:
        raise ValueError("hunter2")
    except ValueError:
        log.exception("no %s", {"a": "hunter1"}, extra={"more": "hunter2"})

    first, *rest = stream.getvalue().splitlines()
    assert "hunter1" in first
    assert "hunter" not in "\n".join(rest)
    assert "${a:1}" in rest[0]
    assert "ValueError: ${a:2}" in "\n".join(rest)


@pytest.mark.usefixtures("_own_logging")
def test_other_output_may_be_masked_as_in_the_log():
    """A command's last words, for one."""
    configure_logging(stream=io.StringIO())
    hide_in_logs({"hunter2": "${a:b}"})

    assert "no ${a:b}" == as_logged("no hunter2")
