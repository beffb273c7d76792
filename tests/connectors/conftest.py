"""What all tests of connectors share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan with nothing else waits for what was begun after a commit, however busy the machine is.

    A local run ends with the first plan that has nothing to do; after a second, a plan has nothing to do, and the
    next one would find it done.
    """
    monkeypatch.setattr("headrace.connectors.files.cleanup.cleaning._WAIT_SECONDS", 30.0)
