"""Which version a connector has, the same in statuses, metrics and the list of plugins."""

from __future__ import annotations

from typing import Final

from headrace import __version__
from headrace.connect.connector import SourceConnector

_OWN: Final = "headrace."


def connector_version(connector: type[SourceConnector]) -> str:
    """The version of a connector's class: what its author says, or that of headrace for its own. Pure."""
    return __version__ if connector.__module__.startswith(_OWN) else connector.version
