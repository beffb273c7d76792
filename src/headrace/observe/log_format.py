"""The log of a process, a worker's or a task's: its configuration, its handler, and lines of words or JSON, each bounded."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ParamSpec, TextIO, TypeVar

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from headrace.observe.log_levels import own_levels
from headrace.observe.secret_masking import Secrets

# Characters kept at each end of a field: more than nearly every traceback has, and a screen or two.
_KEPT = 8 * 1024
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def bounded(mask: Callable[[str], str]) -> Processor:
    """Shortens long values in the middle, and says by how much; *mask* removes secrets from each before."""

    def shorten(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
        for name, value in line.items():
            line[name] = _shortened(value, mask)
        return line

    return shorten


def _shortened(value: object, mask: Callable[[str], str]) -> object:
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= 2 * _KEPT:
        return value
    # Masked first: a secret that is cut in half would not be found.
    shown = mask(text)
    left_out = len(shown) - 2 * _KEPT
    if left_out <= 0:
        return shown
    return (
        f"{shown[:_KEPT]} … ({left_out} of {len(shown)} characters are left out) … {shown[-_KEPT:]}"
    )


WORDS = "words"
"""The field with a line's event name, whose message also has the other fields for plain logging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogForm:
    """The form of log lines. *level* is ``logging``'s root level; *as_json* writes one object a line.

    *levels* are those of single loggers, by name, which their children inherit.

    *worker* is the worker's id, a field of each JSON object, for logs that combine several workers; with *shows_worker* of
    each line of words, too, because several workers of one process write them.
    """

    level: int = logging.WARNING
    as_json: bool = False
    worker: str | None = None
    shows_worker: bool = False
    levels: Mapping[str, int] = field(default_factory=dict[str, int])


class FormHandler(logging.StreamHandler[TextIO]):
    """Writes lines of one *form* to *stream* (default: stderr), each with *fields* besides its own.

    *secrets* are masked; any thread may add more. Long values are shortened.
    """

    def __init__(
        self,
        form: LogForm,
        stream: TextIO | None = None,
        *,
        fields: Mapping[str, object] | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        super().__init__(stream or sys.stderr)
        self.form = form
        self.secrets = secrets or Secrets()
        self._fields = dict(fields or {})
        self.setFormatter(
            _formatter(
                as_json=form.as_json,
                colors=_shows_colors(self.stream),
                mask=self._masked,
            )
        )

    def format(self, record: logging.LogRecord) -> str:
        """*record* as a line; its own fields take precedence over the handler's."""
        for name, value in self._fields.items():
            record.__dict__.setdefault(name, value)
        worker = _one_of_many.get()
        if worker is None and (self.form.as_json or self.form.shows_worker):
            worker = self.form.worker
        if worker is not None:
            record.__dict__.setdefault("worker", worker)
        return self.secrets.masked(super().format(record), as_json=self.form.as_json)

    def _masked(self, text: str) -> str:
        """*text* with the current secrets masked."""
        return self.secrets.masked(text)


def configure_logging(
    level: str = "INFO", *, as_json: bool = False, stream: TextIO | None = None
) -> None:
    """Send all log records of this program to *stream* (default: stderr), once, in one form.

    Called by the command line, before anything is started; replaces the root logger's handlers.
    """
    root = logging.getLogger()
    root.setLevel(level)
    root.handlers[:] = [FormHandler(LogForm(level=root.level, as_json=as_json), stream)]


def hide_in_logs(values: Mapping[str, str]) -> None:
    """In all later lines of this process, show the values of *values* in place of its keys; from any thread.

    Has no effect on handlers that another program has installed.
    """
    for each in _handlers():
        each.acquire()
        try:
            each.secrets = each.secrets.together(values)
        finally:
            each.release()


def as_logged(text: str) -> str:
    """*text* with secrets masked as in a log line of this process, for other output; from any thread."""
    for each in _handlers():
        text = each.secrets.masked(text)
    return text


def name_in_logs(worker: str) -> None:
    """Add the id *worker* to later JSON lines; called when it is known."""
    for each in _handlers():
        each.form = replace(each.form, worker=worker)


_one_of_many: ContextVar[str | None] = ContextVar("worker", default=None)


@contextmanager
def naming_in_logs(worker: str) -> Generator[None]:
    """In the block, add the id *worker* to each line, for one of several workers that run in this process.

    It is added to those of this thread, and of threads that are started here with :func:`in_log_context`.
    """
    token = _one_of_many.set(worker)
    try:
        yield
    finally:
        _one_of_many.reset(token)


def in_log_context(target: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """*target*, for a thread of its own whose log lines are of the same worker as the caller's."""
    return partial(copy_context().run, target)


def named_form(worker: str | None) -> Callable[[], LogForm]:
    """What returns the form in use, for the processes of the *worker*; ``None``: of this process's only one."""
    if worker is None:
        return form_in_use
    return lambda: replace(form_in_use(), worker=worker, shows_worker=True)


def worker_in_logs() -> str | None:
    """The worker that this thread's lines name, if several run in this process."""
    return _one_of_many.get()


def form_in_use() -> LogForm:
    """The form of this process's log lines; plain text if another program has configured logging."""
    forms = [each.form for each in _handlers()]
    return LogForm(
        level=logging.getLogger().level,
        as_json=any(form.as_json for form in forms),
        worker=next((form.worker for form in forms if form.worker), None),
        levels=own_levels(),
    )


def _handlers() -> list[FormHandler]:
    return [each for each in logging.getLogger().handlers if isinstance(each, FormHandler)]


def _shows_colors(stream: TextIO) -> bool:
    """Whether *stream* is a terminal and NO_COLOR is not set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _formatter(*, as_json: bool, colors: bool, mask: Callable[[str], str]) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            _words_alone,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            bounded(mask),
            *(_JSON if as_json else (_long_texts_last, _console(colors=colors))),
        ],
    )


_JSON: tuple[Processor, ...] = (
    structlog.processors.EventRenamer("message"),
    structlog.processors.JSONRenderer(),
)


def _console(*, colors: bool) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=colors, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
    )


def _words_alone(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Remove the fields from the message, because they are shown separately here."""
    line["event"] = line.pop(WORDS, line["event"])
    return line


def _long_texts_last(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Show a traceback, and a reason that would be escaped, on lines of their own, not as one long quoted value.

    A command in a reason can be copied from there.
    """
    reason, last = line.get("reason"), list[str]()
    if isinstance(reason, str) and repr(reason)[1:-1] != reason:
        del line["reason"]
        last += [f"    {_printable(each)}" for each in reason.split("\n")]
    trace = line.pop("trace", None)
    if trace is not None:
        last.append(trace)
    if last:
        line["stack"] = "\n".join(last)
    return line


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
