"""What is told of configurations that are let in."""

from __future__ import annotations

import logging

import pytest

from headrace.admission import admitted, checked_worker

WORKER = {"key.converter": "string", "value.converter": "string"}
CONNECTOR = {
    "name": "c",
    "connector.class": "file_stream",
    "file": "/nowhere",
    "topic": "t",
    "producer.override.interceptor.classes": "a.B",
    "producer.override.enable.idempotence": "false",
}


def test_producer_settings_without_effect_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever set them would believe in them otherwise."""
    with caplog.at_level(logging.WARNING):
        admitted(CONNECTOR, checked_worker(WORKER))

    ignored, overruled = (record.getMessage() for record in caplog.records)
    assert "Connector c: interceptor.classes has no effect" in ignored
    assert "The value 'false' for the 'enable.idempotence' property will be ignored" in overruled
