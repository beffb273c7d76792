"""A listener that hears of secrets only what is shown in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace.observe.events import Event, Tell
from headrace.observe.hidden import Hidden

# Free text; other fields are names and numbers that listeners work with.
_TEXTS = ("reason", "trace")


def hiding(tell: Tell, hidden: Hidden) -> Tell:
    """*tell*, with nothing of what is *hidden* in the sentences of its events."""

    def told(event: Event) -> None:
        masked: dict[str, Any] = {
            name: hidden.masked(text)
            for name in _TEXTS
            if isinstance(text := getattr(event, name, None), str)
        }
        tell(replace(event, **masked) if masked else event)

    return told
