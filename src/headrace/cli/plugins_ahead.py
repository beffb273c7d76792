"""What the list of plugins names is imported before somebody asks for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)

# The first connectors start meanwhile, with imports of their own; nothing else is to take their time.
FIRST_SECONDS: Final = 5.0


def import_ahead(plugins: Callable[[], object], *, after_seconds: float = FIRST_SECONDS) -> None:
    """Ask for *plugins* later, on a thread of its own that holds up no end; returns at once.

    The first list takes seconds, which a client would wait for. What goes wrong is told in the log, and
    again to whoever asks.
    """
    later = threading.Timer(after_seconds, _ask, args=(plugins,))
    later.name = "headrace-plugins"
    later.daemon = True
    later.start()


def _ask(plugins: Callable[[], object]) -> None:
    try:
        plugins()
    except Exception as error:  # noqa: BLE001 (authors' modules may raise anything)
        _log.warning("The plugins could not be listed: %s", error)
