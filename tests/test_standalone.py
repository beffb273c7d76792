"""What a worker says when it starts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headrace.connect.errors import ConnectError
from headrace.observe.form import LogForm
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.offset_homes import OffsetHomes
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.standalone import foundation, standalone
from headrace.storage.memory import MemoryOffsetStore

NOWHERE = {
    "bootstrap.servers": "127.0.0.1:9",
    "key.converter": "string",
    "value.converter": "string",
    "headrace.start.deadline.ms": "300",
}


def _started(state_file: Path, **settings: str) -> str:
    """Why the worker did not start: nothing listens where its broker should be."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    config = WorkerConfig.parse(NOWHERE | given)
    with (
        pytest.raises(ConnectError) as caught,
        standalone(config, [], state_file=state_file, tell=lambda _: None),
    ):
        pass
    return str(caught.value)


def test_a_new_identity_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever moves the worker's file would otherwise send everything again without a word."""
    state_file = tmp_path / "s.db"
    with caplog.at_level(logging.WARNING):
        _started(state_file)
        _started(state_file)
        _started(tmp_path / "other.db", group_id="mine")

    [told] = [each for each in caplog.messages if "This worker is new" in each]
    assert f"state file {state_file}" in told
    assert "Set group.id=headrace-" in told


def test_offsets_that_begin_in_a_new_state_file_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A name does not keep them."""
    state_file = tmp_path / "s.db"
    with caplog.at_level(logging.WARNING):
        _started(state_file, group_id="mine", exactly_once_source_support="disabled")

    assert f"Set state.file={state_file} to keep" in caplog.text


def test_a_broker_that_is_not_there_is_named_with_the_reason(tmp_path: Path) -> None:
    """The address, what the client says, and how long it was waited."""
    told = _started(tmp_path / "s.db")

    assert told.startswith("Kafka at 127.0.0.1:9 was not reached: ")
    assert "Connection refused" in told
    assert "Gave up after 0.3 s (headrace.start.deadline.ms)." in told


def test_slots_are_told_the_form_of_the_worker_s_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their processes begin without any."""
    form = LogForm(level=logging.DEBUG, as_json=True)
    monkeypatch.setattr(foundation, "form_in_use", lambda: form)
    desk = OffsetDesk(MemoryOffsetStore())
    channel = foundation.channel_for(WorkerConfig.parse(NOWHERE), OffsetHomes(desk))
    channel.close()

    assert form == channel._log()
