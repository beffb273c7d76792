"""Logging in a slot's process, which inherits nothing of the worker's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from headrace.observe.log_format import FormHandler, LogForm
from headrace.observe.log_levels import ShippedLevels
from headrace.observe.secret_masking import Secrets, printed_as

Follow = Callable[[LogForm], None]
"""Logs as the worker does from now on."""


@contextmanager
def slot_log(
    form: LogForm, *, connector: str, task: int, hidden: Secrets | None = None
) -> Generator[Follow]:
    """Log to stderr in the worker's *form*, each line with *connector* and *task*, while the slot runs.

    No line shows what is *hidden*, and nothing that is printed does. What is yielded takes the levels and the id of the worker when they have
    changed; from one thread at a time, within the context.

    Called once per slot, by the thread that runs it. A process whose logging somebody has set up, such as
    a test's, is left as it is. Spark uses its Python processes again for other connectors, so what was
    set up is taken away at the end.
    """
    root = logging.getLogger()
    if root.handlers:
        yield lambda _: None
        return
    handler = FormHandler(form, fields={"connector": connector, "task": task}, hidden=hidden)
    levels = ShippedLevels()

    def follow(form: LogForm) -> None:
        handler.form = form
        levels.carry(form.level, form.levels)

    follow(form)
    root.addHandler(handler)
    try:
        with printed_as(handler.hidden.masked):
            yield follow
    finally:
        root.removeHandler(handler)
        levels.restore()
