"""Which connectors there are, for somebody who has named another. Pure."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from headrace.cli.table import one_line

# More fill the screen, and hide the one that was meant.
_FEW: Final = 8


def known_names(names: Collection[str], wanted: str) -> str:
    """What there is: all *names* while they are few, otherwise those that look like *wanted*."""
    if not names:
        return "there are no connectors"
    if len(names) == 1:
        return f"there is the connector {_listed(names)}"
    if len(names) <= _FEW:
        return f"there are the connectors {_listed(sorted(names))}"
    alike = get_close_matches(wanted, names)
    told = (
        f"{_listed(alike)} and {len(names) - len(alike)} more" if alike else f"{len(names)} of them"
    )
    return f"'headrace connectors list' shows the connectors: {told}"


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(one_line, names))
