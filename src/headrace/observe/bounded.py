"""Fields of log lines, none of them so long that nobody reads it and every disk fills up."""

from __future__ import annotations

from collections.abc import Callable

from structlog.typing import EventDict, Processor, WrappedLogger

# Of a field, at its beginning and at its end: more than nearly every traceback has, and a screen or two each.
_KEPT = 8 * 1024


def bounded(mask: Callable[[str], str]) -> Processor:
    """Shortens long values in the middle, and says by how much; *mask* takes secrets from each before."""

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
    # Half of a secret would not be found any more.
    shown = mask(text)
    left_out = len(shown) - 2 * _KEPT
    if left_out <= 0:
        return shown
    return (
        f"{shown[:_KEPT]} … ({left_out} of {len(shown)} characters are left out) … {shown[-_KEPT:]}"
    )
