"""What tests of the source framework share."""

from __future__ import annotations

import pytest

from sources.shelf import SHELF, Shelf


@pytest.fixture
def shelf() -> Shelf:
    """An empty shelf, which the connectors of the shelf read."""
    SHELF.__init__()
    return SHELF
