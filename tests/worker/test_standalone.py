"""What a worker says when it starts."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import ConfigError, ConnectError, RetriableError
from headrace.herder.requests import CreateRequest
from headrace.observe import log_format
from headrace.observe.log_format import LogForm
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.store import LockedOffsetStore
from headrace.plugins import validated_connectors
from headrace.storage.memory import MemoryOffsetStore
from headrace.storage.sqlite import SqliteStorage
from headrace.task.channel import ChannelClient
from headrace.worker import running, serving, standalone
from headrace.worker import services as foundation
from runtime.test_micro_batch import micro_batch
from waiting import until

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
        running(config, [], state_file=state_file, emit=lambda _: None),
    ):
        pass
    return str(caught.value)


def _reached(state_file: Path, **settings: str) -> str:
    """The name of a worker whose broker has answered."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    config = WorkerConfig.parse(NOWHERE | given)
    with closing(SqliteStorage(state_file)) as storage:
        group_id = foundation.identity(config, storage)
        foundation.keep_identity(config, storage, group_id)
    return group_id


def test_a_worker_that_never_reached_kafka_leaves_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a state file nor a name: the address may be wrong."""
    with caplog.at_level(logging.WARNING):
        _started(tmp_path / "s.db")

    assert [] == list(tmp_path.iterdir())
    assert "This worker is new" not in caplog.text


def test_a_serving_worker_that_never_reached_kafka_leaves_nothing_behind(tmp_path: Path) -> None:
    """It has answered requests meanwhile, and none of them has stored anything."""
    with serving(
        WorkerConfig.parse(NOWHERE), state_file=tmp_path / "s.db", emit=lambda _: None
    ) as herder:
        herder.start()
        assert [] == list(herder.connectors())
        until(lambda: herder.failure is not None, seconds=20)

    assert [] == list(tmp_path.iterdir())


def test_a_new_identity_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever moves the worker's file would otherwise send everything again without a word."""
    state_file = tmp_path / "s.db"
    with caplog.at_level(logging.WARNING):
        names = [_reached(state_file), _reached(state_file)]
        _reached(tmp_path / "other.db", group_id="mine")

    assert 1 == len(set(names))
    [told] = [each for each in caplog.messages if "This worker is new" in each]
    assert f"state file {state_file}" in told
    assert "Set group.id=headrace-" in told


def test_offsets_that_begin_in_a_new_state_file_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A name does not keep them."""
    state_file = tmp_path / "s.db"
    with caplog.at_level(logging.WARNING):
        _reached(state_file, group_id="mine", exactly_once_source_support="disabled")

    assert f"Set state.file={state_file} to keep" in caplog.text


def test_a_connector_s_warnings_are_logged_when_its_file_is_read_and_not_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A start logs what the reading has not logged."""
    config = WorkerConfig.parse(NOWHERE)
    given = {"name": "c", "connector.class": "files", "topic": "t", "files.path": "in/*.log"}
    misspelt = {**given, "topc": "t"}
    with caplog.at_level(logging.WARNING):
        connectors = validated_connectors([lambda: misspelt], config)
        with serving(
            config,
            state_file=tmp_path / "s.db",
            emit=lambda _: None,
            validated=connectors,
        ) as herder:
            herder.start()
            herder.create(CreateRequest(name="c", config=misspelt, dry_run=True))
            assert 1 == caplog.text.count("topc")
            herder.create(CreateRequest(name="c", config={**given, "topix": "t"}, dry_run=True))

    assert (1, 1) == (caplog.text.count("topc"), caplog.text.count("topix"))


def test_a_broker_that_is_not_there_is_named_with_the_reason(tmp_path: Path) -> None:
    """The address, what the client says, and how long it was waited."""
    told = _started(tmp_path / "s.db")

    assert told.startswith("Kafka at 127.0.0.1:9 was not reached: ")
    assert "Connection refused" in told
    assert "Tried for 0.3 s (headrace.start.deadline.ms)." in told


def test_what_a_late_start_has_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its channel has a port of its own; and the log does not fill up while it is tried."""
    fails = iter([RetriableError("The import waits."), None])

    def import_java_offsets(*_: object) -> None:
        error = next(fails)
        if error is not None:
            raise error

    def reach_kafka(_: object, report: Callable[[str], None]) -> str:
        report("Waiting for Kafka")
        return "k"

    monkeypatch.setattr(foundation, "import_java_offsets", import_java_offsets)
    monkeypatch.setattr(standalone, "reach_kafka", reach_kafka)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = WorkerConfig.parse(
        NOWHERE
        | {
            "exactly.once.source.support": "disabled",
            "offset.storage.file.filename": "any",
            "headrace.channel.listener": f"127.0.0.1:{port}",
        }
    )
    with serving(
        config, state_file=tmp_path / "s.db", emit=lambda _: None, retries_start=True
    ) as herder:
        herder.start()
        herder.ready()
        until(lambda: herder.is_open)

    assert 1 == caplog.messages.count("Waiting for Kafka")


def test_slots_get_the_form_of_the_worker_s_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their processes begin without any."""
    form = LogForm(level=logging.DEBUG, as_json=True)
    monkeypatch.setattr(log_format, "form_in_use", lambda: form)
    desk = LockedOffsetStore(MemoryOffsetStore())
    channel = foundation.channel_for(WorkerConfig.parse(NOWHERE), ConnectorOffsetStores(desk))
    channel.close()

    assert form == channel._log()


@pytest.mark.parametrize("listener", ["no-host.invalid:0", "192.0.2.1:0"])
def test_where_no_channel_can_listen_is_a_wrong_setting(listener: str) -> None:
    """A name that is not known, and an address that is not this machine's."""
    config = WorkerConfig.parse(NOWHERE | {"headrace.channel.listener": listener})
    desk = LockedOffsetStore(MemoryOffsetStore())

    with pytest.raises(
        ConfigError, match=f"headrace.channel.listener: .* cannot listen on {listener}"
    ):
        foundation.channel_for(config, ConnectorOffsetStores(desk))


@pytest.mark.parametrize("protocol", ["SSL", "PLAINTEXT"])
def test_slots_are_told_the_certificate_of_an_encrypted_channel(protocol: str) -> None:
    """As the configuration says; on the loopback interface only if it says so."""
    props = NOWHERE | {"headrace.channel.security.protocol": protocol}
    desk = LockedOffsetStore(MemoryOffsetStore())
    batch = micro_batch(1)
    channel = foundation.channel_for(WorkerConfig.parse(props), ConnectorOffsetStores(desk))
    ticket = channel.open(batch)[0]
    with ChannelClient(ticket) as client:
        assert client.ask("valid")["valid"]
    channel.close()

    assert (protocol == "SSL") == (ticket.fingerprint is not None)
