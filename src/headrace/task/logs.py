"""Logging in a slot's process, which inherits no logging configuration from the worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from headrace.observe.log_format import FormHandler, LogForm
from headrace.observe.log_levels import ShippedLevels
from headrace.observe.secret_masking import Secrets, printed_as

Follow = Callable[[LogForm], None]
"""Applies the worker's current log settings."""


@contextmanager
def slot_log(
    form: LogForm, *, connector: str, task: int, secrets: Secrets | None = None
) -> Generator[Follow]:
    """Log to stderr in the worker's *form*, each line with *connector* and *task*, while the slot runs.

    *secrets* are masked in log lines and in printed output. The yielded function applies changed levels
    and a changed id of the worker; call it from one thread at a time, within the context.

    Called once per slot, by the thread that runs it. A process whose logging is already configured, such as a
    test's, is left unchanged. Spark reuses its Python processes for other connectors, so the configuration is
    removed at the end.
    """
    root = logging.getLogger()
    if root.handlers:
        yield lambda _: None
        return
    handler = FormHandler(form, fields={"connector": connector, "task": task}, secrets=secrets)
    levels = ShippedLevels()

    def follow(form: LogForm) -> None:
        handler.form = form
        levels.carry(form.level, form.levels)

    follow(form)
    root.addHandler(handler)
    try:
        with printed_as(handler.secrets.masked):
            yield follow
    finally:
        root.removeHandler(handler)
        levels.restore()
