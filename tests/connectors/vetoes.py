"""What a connector says to offsets that a person wants to set."""

from __future__ import annotations

from headrace.connect.connector import SourceConnector
from headrace.connect.errors import OffsetsError
from headrace.connect.task import Offsets


def veto(connector: SourceConnector, offsets: Offsets) -> str | None:
    """Why *connector* refuses *offsets*; ``None`` when it takes them."""
    try:
        connector.validate_offsets({}, offsets)
    except OffsetsError as error:
        return str(error)
    return None
