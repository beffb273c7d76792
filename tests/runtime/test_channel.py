"""The channel between driver and slots, over a real socket."""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

import pytest

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.listener_tls import TlsKeys
from headrace.observe.log_format import LogForm
from headrace.offsets.target import DriverStore
from headrace.pids import identity_of
from headrace.runtime.channel_server import Channel, ChannelTls
from headrace.runtime.micro_batch import MicroBatch
from headrace.task.channel import ChannelClient, ChannelOffsets, Lease
from headrace.task.connector_spec import ConnectorSpec, Delivery, PluginChoice
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotTicket, SlotWork
from headrace.task.worker_task import run_slot
from waiting import until

FILE = SourcePartition(filename="f")
STRINGS = PluginChoice(class_name="string")
Entries = list[tuple[bytes, bytes | None]]


@pytest.fixture
def stored() -> Entries:
    """What the driver was given to store."""
    return []


@pytest.fixture(scope="module")
def certified() -> ChannelTls:
    """A certificate of the driver's own."""
    context, fingerprint = TlsKeys(props={}).pinned_context()
    return ChannelTls(context=context, fingerprint=fingerprint)


@pytest.fixture(params=["PLAINTEXT", "SSL"])
def tls(request: pytest.FixtureRequest, certified: ChannelTls) -> ChannelTls | None:
    """Everything is the same with and without."""
    return certified if request.param == "SSL" else None


@pytest.fixture
def channel(stored: Entries, tls: ChannelTls | None) -> Iterator[Channel]:
    """A listening channel."""
    channel = Channel(stored.extend, tls=tls)
    yield channel
    channel.close()


@pytest.fixture
def batch() -> MicroBatch:
    """One slot, whose source partition has an offset."""
    work = SlotWork(
        spec=ConnectorSpec(
            name="c",
            props={"secret": "s"},
            max_tasks=1,
            delivery=Delivery.AT_LEAST_ONCE,
            producer={},
            offsets=DriverStore(),
            key_converter=STRINGS,
            value_converter=STRINGS,
            header_converter=STRINGS,
        ),
        task=0,
        lease_seconds=10.0,
        grace_seconds=5.0,
        transaction_seconds=60.0,
        task_class="m:T",
        config={"secret": "s"},
        planned=True,
        splits=(),
        transactional_id=None,
    )
    return MicroBatch([work], {FILE: {"position": 7}}, run="r")


@pytest.fixture
def ticket(channel: Channel, batch: MicroBatch) -> SlotTicket:
    """What Spark carries to the slot."""
    (ticket,) = channel.open(batch)
    return ticket


def claim(client: ChannelClient, version: str | None = None) -> dict[str, object]:
    """Claim as a slot does."""
    from headrace import __version__

    return client.ask("claim", pid=1, host="h", version=version or __version__)


def test_a_claim_is_answered_with_the_work(ticket: SlotTicket, batch: MicroBatch) -> None:
    """The work travels over the channel and not through Spark."""
    with ChannelClient(ticket) as client:
        answer = claim(client)

    assert batch.slots[0].work.as_message() == answer["work"]


def test_a_claim_says_which_process_will_do_the_work(ticket: SlotTicket, batch: MicroBatch) -> None:
    """By more than its pid, which another process may get."""
    report = run_slot(ticket)
    (slot,) = batch.slots

    assert "m:T could not be loaded" in str(report.reason)
    assert (os.getpid(), identity_of(os.getpid())) == (slot.pid, slot.identity)
    assert slot.identity is not None


def test_a_claim_is_answered_with_the_form_of_the_log(batch: MicroBatch) -> None:
    """A slot's process inherits nothing of the worker's logging."""
    form = LogForm(level=logging.DEBUG, as_json=True, levels={"a.b": logging.ERROR})
    channel = Channel(lambda _: None, log=lambda: form)
    with ChannelClient(channel.open(batch)[0]) as client:
        answer = claim(client)
    channel.close()

    assert form == LogForm(**answer["log"])  # type: ignore[arg-type]


def test_a_running_slot_hears_of_other_levels(batch: MicroBatch) -> None:
    """With the next answer to its heartbeat."""
    forms = [LogForm(level=logging.INFO)]
    channel = Channel(lambda _: None, log=lambda: forms[-1])
    heard = list[LogForm]()
    ticket = channel.open(batch)[0]
    with ChannelClient(ticket) as client:
        claim(client)
        forms.append(LogForm(level=logging.ERROR, levels={"a": logging.DEBUG}))
        lease = Lease(
            ChannelClient(ticket),
            Progress(),
            lease_seconds=30,
            beat_seconds=0.01,
            follow_log=heard.append,
        )
        lease.start()
        until(lambda: bool(heard))
        lease.close()
    channel.close()

    assert forms[-1] == heard[0]


def test_a_second_claim_is_stale(ticket: SlotTicket) -> None:
    """From whatever connection it comes."""
    with ChannelClient(ticket) as first, ChannelClient(ticket) as second:
        claim(first)

        assert {"granted": False, "reason": "stale"} == claim(second)


def test_a_slot_of_another_version_gets_no_work(ticket: SlotTicket, batch: MicroBatch) -> None:
    """Executors need the same headrace as the driver, and the answer says so."""
    with ChannelClient(ticket) as client:
        answer = claim(client, version="0.0.0")

    assert "install headrace" in str(answer["reason"])
    assert not batch.slots[0].claimed
    assert [(0, answer["reason"])] == batch.refused()


def test_whoever_does_not_know_the_secret_is_not_answered(ticket: SlotTicket) -> None:
    """Knowing the port and the token is not enough."""
    stranger = dataclasses.replace(ticket, secret=b"guessed")

    with ChannelClient(stranger) as client, pytest.raises(RetriableError, match="did not answer"):
        claim(client)


def test_a_server_that_does_not_know_the_secret_is_not_believed(ticket: SlotTicket) -> None:
    """Another process that took the port cannot hand out work."""
    other = Channel(lambda _: None)
    port = other.open(MicroBatch([], {}, run="r")) or other._server.server_address[1]
    impostor = dataclasses.replace(ticket, port=port)

    with ChannelClient(impostor) as client, pytest.raises(RetriableError):
        claim(client)
    other.close()


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", 1), ("127.0.0.1", 0)])
def test_a_listener_that_others_reach_is_warned_of(
    host: str, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with what can be read there, if nothing on the channel is encrypted."""
    Channel(lambda _: None, address=(host, 0)).close()

    notices = [each for each in caplog.messages if "not encrypted" in each and host in each]
    assert warned == len(notices)


def test_the_driver_answers_with_committed_offsets(ticket: SlotTicket) -> None:
    """A slot asks instead of replaying the topic."""
    missing = SourcePartition(filename="g")
    with ChannelClient(ticket) as client:
        found = ChannelOffsets(client).offsets([FILE, missing])

    assert {FILE: {"position": 7}, missing: None} == found


def test_acknowledged_offsets_are_stored_before_the_answer(
    ticket: SlotTicket, stored: Entries
) -> None:
    """The slot may then acknowledge upstream."""
    with ChannelClient(ticket) as client:
        answer = client.ask("store", entries=[["k", "v"], ["gone", None]])

    assert answer["stored"]
    assert [(b"k", b"v"), (b"gone", None)] == stored


def test_acknowledged_offsets_of_a_withdrawn_token_are_refused(
    ticket: SlotTicket, stored: Entries, batch: MicroBatch
) -> None:
    """Its successor may have stored newer ones; the slot hears that it must not acknowledge upstream."""
    batch.withdraw()

    with ChannelClient(ticket) as client:
        answer = client.ask("store", entries=[["k", "v"]])

    assert {"stored": False, "reason": "The token was withdrawn."} == answer
    assert [] == stored


def test_a_forgotten_micro_batch_is_stale_in_every_answer(
    channel: Channel, batch: MicroBatch, ticket: SlotTicket
) -> None:
    """A slot of a job that is over hears that it does not count."""
    channel.forget(batch)

    with ChannelClient(ticket) as client:
        answers = (
            claim(client)["granted"],
            client.ask("valid")["valid"],
            client.ask("beat", progress={})["valid"],
            client.ask("store", entries=[])["stored"],
        )

    assert (False, False, False, False) == answers


def test_a_driver_that_is_gone_is_a_retriable_error(ticket: SlotTicket, channel: Channel) -> None:
    """It names the address."""
    channel.close()
    with ChannelClient(ticket) as client, pytest.raises(RetriableError, match=str(ticket.port)):
        client.ask("valid")


QUIET_SECONDS = 0.1


@pytest.fixture
def quick_to_close(tls: ChannelTls | None) -> Iterator[Channel]:
    """A channel that looks at a quiet connection soon."""
    channel = Channel(lambda _: None, tls=tls, quiet_seconds=QUIET_SECONDS)
    yield channel
    channel.close()


def connections() -> int:
    """How many threads serve connections."""
    return sum("process_request_thread" in each.name for each in threading.enumerate())


def wait_until_quiet_ones_are_closed(ticket: SlotTicket) -> None:
    """Those that begin to be quiet only now, of which nothing is expected."""
    before = connections()
    with ChannelClient(ticket) as stranger:
        stranger._connected()
        until(lambda: connections() == before)


@pytest.mark.parametrize("verb", ["valid", "store"])
def test_a_slot_that_works_may_be_quiet(
    quick_to_close: Channel, batch: MicroBatch, verb: str
) -> None:
    """Its heartbeat has a connection of its own; a long micro-batch does not lose the slot's final report."""
    (ticket,) = quick_to_close.open(batch)
    with ChannelClient(ticket) as client:
        claim(client)
        connection = client._connection
        wait_until_quiet_ones_are_closed(ticket)
        client.ask(verb, entries=[])

        assert connection is client._connection
        client.ask("end", report=SlotReport(outcome=Outcome.FINISHED).as_message())

    assert batch.all_reported()


@pytest.mark.parametrize("how", ["end", "withdraw", "forget"])
def test_a_quiet_connection_of_which_nothing_is_expected_is_closed(
    quick_to_close: Channel, batch: MicroBatch, how: str
) -> None:
    """The slot's machine may be gone without a word, and its connection would keep a thread forever."""
    before = connections()
    with ChannelClient(quick_to_close.open(batch)[0]) as client:
        claim(client)
        assert before + 1 == connections()
        if how == "end":
            client.ask("end", report=SlotReport(outcome=Outcome.FINISHED).as_message())
        elif how == "withdraw":
            batch.withdraw()
        else:
            quick_to_close.forget(batch)

        until(lambda: connections() == before)


def test_whoever_says_nothing_at_all_is_not_kept(
    quick_to_close: Channel, batch: MicroBatch
) -> None:
    """Knowing the secret is not enough to keep a thread."""
    before = connections()
    with ChannelClient(quick_to_close.open(batch)[0]) as client:
        client._connected()

        until(lambda: connections() == before)


@pytest.mark.parametrize("verb", ["valid", "offsets", "end"])
def test_a_request_that_may_be_repeated_is_not_lost_with_an_idle_connection(
    ticket: SlotTicket, batch: MicroBatch, verb: str
) -> None:
    """Whatever lies between driver and slot may have closed it."""
    report = SlotReport(outcome=Outcome.FINISHED).as_message()
    with ChannelClient(ticket) as client:
        claim(client)
        client._connected().shutdown(socket.SHUT_RDWR)
        client.ask(verb, partitions=[], report=report)

    assert (verb == "end") == batch.all_reported()


def test_a_claim_is_never_repeated(ticket: SlotTicket, batch: MicroBatch) -> None:
    """The answer that was lost may have granted it."""
    with ChannelClient(ticket) as client:
        client.ask("valid")
        client._connected().shutdown(socket.SHUT_RDWR)
        with pytest.raises(RetriableError, match="did not answer 'claim'"):
            claim(client)

    assert not batch.slots[0].claimed


def test_with_a_certificate_nothing_can_be_read_on_the_way(
    certified: ChannelTls, batch: MicroBatch
) -> None:
    """The work has passwords; a slot sees the same."""
    seen = dict[bool, bytes]()
    for tls in (None, certified):
        channel = Channel(lambda _: None, tls=tls)
        ticket = channel.open(batch)[0]
        with Tap(ticket.port) as tap:
            with ChannelClient(dataclasses.replace(ticket, port=tap.port)) as client:
                client.ask("offsets", partitions=[dict(FILE)])
            seen[tls is not None] = tap.read()
        channel.close()

    assert b'"filename"' in seen[False]
    assert len(seen[True]) > len(seen[False])
    assert b"filename" not in seen[True]
    assert b"position" not in seen[True]


def test_another_certificate_is_refused_before_anything_is_sent(
    certified: ChannelTls, batch: MicroBatch
) -> None:
    """Whoever answers there may even know the secret."""
    channel = Channel(lambda _: None, tls=certified)
    ticket = channel.open(batch)[0]
    other = dataclasses.replace(ticket, fingerprint=bytes(32))
    with ChannelClient(other) as client, pytest.raises(RetriableError) as refused:
        claim(client)
    with ChannelClient(ticket) as client:
        granted = claim(client)["granted"]
    channel.close()

    assert bytes(32).hex() in str(refused.value)
    assert certified.fingerprint.hex() in str(refused.value)
    assert "Nothing was sent to it" in str(refused.value)
    assert granted


def test_a_slot_does_not_go_on_without_tls(certified: ChannelTls, batch: MicroBatch) -> None:
    """A listener without a certificate is not the driver's."""
    channel = Channel(lambda _: None)
    ticket = dataclasses.replace(channel.open(batch)[0], fingerprint=certified.fingerprint)
    with ChannelClient(ticket) as client, pytest.raises(RetriableError, match="did not answer"):
        claim(client)
    channel.close()

    assert not batch.slots[0].claimed


def test_a_driver_does_not_answer_without_tls(certified: ChannelTls, batch: MicroBatch) -> None:
    """Nor does it keep a connection on which nothing comes."""
    before = connections()
    channel = Channel(lambda _: None, tls=certified, quiet_seconds=QUIET_SECONDS)
    ticket = dataclasses.replace(channel.open(batch)[0], fingerprint=None)
    with ChannelClient(ticket) as client, pytest.raises(RetriableError, match="did not answer"):
        claim(client)
    with socket.create_connection((ticket.host, ticket.port)):
        until(lambda: connections() == before)
    channel.close()

    assert not batch.slots[0].claimed


def test_a_large_answer_and_many_small_ones_pass_tls(
    certified: ChannelTls, batch: MicroBatch
) -> None:
    """A plan of many splits is longer than a record of TLS, and one may hold several messages."""
    channel = Channel(lambda _: None, tls=certified, quiet_seconds=5.0)
    missing = [SourcePartition(filename=f"{number:0200}") for number in range(20_000)]
    with ChannelClient(channel.open(batch)[0]) as client:
        found = ChannelOffsets(client).offsets(missing)
        for _ in range(50):
            assert client.ask("valid")["valid"]
    channel.close()

    assert dict.fromkeys(missing) == found


class Tap:
    """Passes what comes to *port* on, and keeps a copy."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._passed = list[bytes]()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the port."""
        self._server.close()

    def read(self) -> bytes:
        """All that has passed, once the connection has ended."""
        self._thread.join(20)
        return b"".join(self._passed)

    def _run(self) -> None:
        near, _ = self._server.accept()
        far = socket.create_connection(("127.0.0.1", self._port))
        back = threading.Thread(target=self._pass_on, args=(far, near))
        back.start()
        self._pass_on(near, far)
        back.join()
        near.close()
        far.close()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        while some := source.recv(1 << 16):
            self._passed.append(some)
            target.sendall(some)
        # The other side may have ended before.
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
