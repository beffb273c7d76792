"""Logging in a slot's process, which inherits nothing of the worker's."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from headrace.observe.form import FormHandler, LogForm
from headrace.observe.hidden import Hidden


@contextmanager
def slot_log(
    form: LogForm, *, connector: str, task: int, hidden: Hidden | None = None
) -> Generator[None]:
    """Log to stderr in the worker's *form*, each line with *connector* and *task*, while the slot runs.

    No line shows what is *hidden*.

    Called once per slot, by the thread that runs it. A process whose logging somebody has set up, such as
    a test's, is left as it is. Spark uses its Python processes again for other connectors, so what was
    set up is taken away at the end.
    """
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    handler = FormHandler(form, fields={"connector": connector, "task": task}, hidden=hidden)
    level = root.level
    root.addHandler(handler)
    root.setLevel(form.level)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
