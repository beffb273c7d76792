"""Waiting for a condition."""

from __future__ import annotations

from headrace.broker.broker import until


def test_deadline():
    """Waiting ends at the deadline."""
    assert not until(lambda: False, seconds=0)
