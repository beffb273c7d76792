"""A connection of our own: what arrives in pieces, late, or not at all, and logins that are renewed."""

from __future__ import annotations

import gc
import select
import socket
import ssl
import struct
import threading
import time
import urllib.error
from collections.abc import Iterator
from email.message import Message

import pytest

from doubles.scripted_broker import (
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
    Received,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
    ScriptedBroker,
    framed,
)
from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    UnsupportedApiError,
    WireConnection,
    unresolvable,
)
from headrace.kafka.wire.produce_request import produce_body
from headrace.kafka.wire.settings import WireSettings

VERSIONS = (4, 12)
LOGIN = {
    "sasl_mechanism": "PLAIN",
    "security_protocol": "SASL_SSL",
    "sasl_plain_username": "me",
    "sasl_plain_password": "canary",
}


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """What it shows now."""
        return self.now


def soon(seconds: float = 20) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def answer(name: str) -> MetadataResponse:
    """An answer that can be told from others."""
    return MetadataResponse(
        throttle_time_ms=0, brokers=[], cluster_id=name, controller_id=1, topics=[]
    )


def request() -> MetadataRequest:
    """Any request."""
    return MetadataRequest(topics=[], allow_auto_topic_creation=False)


def connected(broker: ScriptedBroker, **settings: object) -> WireConnection:
    """A connection to it."""
    made = WireSettings(addresses=(broker.address,), client_id="test", **settings)  # pyright: ignore[reportArgumentType]
    return WireConnection(*broker.address, made, soon())


@pytest.fixture
def counting() -> Iterator[ScriptedBroker]:
    """Answers with the number of the request, and logs everybody in for two seconds."""
    numbers = iter(range(100))

    def script(received: Received) -> object:
        if received.name == "SaslHandshake":
            return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])
        if received.name == "SaslAuthenticate":
            return SaslAuthenticateResponse(
                error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=2_000
            )
        return answer(str(next(numbers)))

    with ScriptedBroker(script) as made:
        yield made


def test_requests_may_be_in_flight_together(counting: ScriptedBroker) -> None:
    """Their answers come in their order."""
    connection = connected(counting)
    for _ in range(3):
        connection.send(request(), soon(), versions=VERSIONS)
    found = [connection.next_answer(soon()).decoded().cluster_id for _ in range(3)]
    connection.close()

    assert ["0", "1", "2"] == found


def test_an_answer_is_read_whatever_became_of_the_library_s_registry_of_classes(
    counting: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads that ask for an answer's class at the same time leave a dead reference in kafka-python's."""
    monkeypatch.setattr(MetadataResponse, "_VERSIONS", {})
    assert MetadataResponse[VERSIONS[1]] is not None
    MetadataResponse._VERSIONS.clear()
    gc.collect()
    sent = request()
    sent.API_VERSION = VERSIONS[1]
    sent.with_header(correlation_id=1, client_id="test")
    with pytest.raises(ReferenceError):
        sent.header.get_response_class()

    connection = connected(counting)
    assert "0" == connection.ask(request(), soon(), versions=VERSIONS).cluster_id
    connection.close()


def test_an_answer_may_come_in_pieces_and_over_several_waits() -> None:
    """What a wait has received is kept for the next one."""
    number = 2
    whole = framed(answer("whole"), 12, number)

    def script(received: Received) -> bytes:
        time.sleep(0.25)
        return whole

    with ScriptedBroker(script) as broker:
        connection = connected(broker)
        connection.send(request(), soon(), versions=VERSIONS)
        waits = 0
        while (found := connection.receive(soon(0.1))) is None:
            waits += 1
        connection.close()

    assert waits >= 1
    assert "whole" == found.decoded().cluster_id


def test_each_byte_may_come_alone() -> None:
    """Between two of them a wait may end."""
    whole = framed(answer("whole"), 12, 2)

    with ScriptedBroker(whole[:1]) as broker:
        connection = connected(broker)
        connection.send(request(), soon(), versions=VERSIONS)
        [accepted] = broker.connections
        for at in range(1, len(whole)):
            until_read(connection)
            accepted.sendall(whole[at : at + 1])
        found = connection.next_answer(soon())
        connection.close()

    assert "whole" == found.decoded().cluster_id


def until_read(connection: WireConnection) -> None:
    """Wait until what there is was received, which is not the answer yet."""
    select.select([connection], [], [], 5)
    assert connection.receive(soon(0)) is None


def test_the_body_is_a_view_of_what_was_received(counting: ScriptedBroker) -> None:
    """It cannot be written to, and lies behind the header in the one buffer."""
    connection = connected(counting)
    connection.send(request(), soon(), versions=VERSIONS)
    found = connection.next_answer(soon())
    connection.close()

    assert found.body.readonly
    assert len(found.body) == found.body.obj.nbytes - len(b"1234") - len(b"\0")


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\0\0\0\2\0\0", id="too short"),
        pytest.param(b"\xff\xff\xff\xff", id="negative length"),
        pytest.param(b"\0\0\0\5\0\0\0\x63\0", id="another request's"),
        pytest.param(b"\0\0\0\5\0\0\0\2\x80", id="header cut off"),
        pytest.param(b"\0\0\0\7\0\0\0\2\0\0\0", id="body cut off"),
    ],
)
def test_an_answer_that_is_none_is_a_lost_connection(frame: bytes) -> None:
    """It is never taken for one with less in it."""
    with ScriptedBroker(frame) as broker:
        connection = connected(broker)
        with pytest.raises(ConnectionError):
            connection.ask(request(), soon(), versions=VERSIONS)
        connection.abort()


def test_an_announced_length_is_bounded() -> None:
    """Nothing of that length is allocated."""
    with ScriptedBroker(struct.pack(">i", 2_000_000)) as broker:
        connection = connected(broker, max_answer_bytes=1_000_000)
        with pytest.raises(AnswerTooLargeError, match="2000000") as raised:
            connection.ask(request(), soon(), versions=VERSIONS)
        connection.abort()
    final = unresolvable(raised.value, "a request", WireSettings(addresses=(), client_id="test"))

    assert final is not None
    assert "receive.message.max.bytes" in str(final)


def test_a_port_that_wants_tls_says_so() -> None:
    """And is not waited for: its first bytes are TLS's alert."""
    with ScriptedBroker(bytes((0x15, 3, 3, 0, 2, 2, 80))) as broker:
        connection = connected(broker)
        with pytest.raises(LoginRefusedError, match="TLS"):
            connection.ask(request(), soon(), versions=VERSIONS)
        connection.abort()


def test_a_version_that_the_broker_does_not_have_is_not_sent() -> None:
    """Neither an older nor a newer one."""
    with ScriptedBroker(None, versions={3: (2, 3)}) as broker:
        connection = connected(broker)
        for versions in ((4, 12), (0, 1)):
            with pytest.raises(UnsupportedApiError, match="Metadata"):
                connection.send(request(), soon(), versions=versions)
        connection.close()

    assert [] == broker.named("Metadata")


def body_of(filler: int) -> list[bytes | memoryview]:
    """A Produce request of version 9 in many pieces, some of which are long."""
    return produce_body(
        {"t": [(number, [b"header", bytes(filler)]) for number in range(40)]},
        version=9,
        transactional_id=None,
        timeout_ms=7,
    )


def test_a_request_goes_in_pieces_as_the_system_takes_them() -> None:
    """Nothing is waited for; two may be begun before the first has gone."""
    go_on = threading.Event()
    # 40 times as many bytes: more than the system keeps for a broker that reads nothing meanwhile.
    sizes = [100, 1_500_000, 5_000]

    def script(received: Received) -> object:
        go_on.wait(20)
        return ProduceResponse(throttle_time_ms=0, responses=[])

    with ScriptedBroker(script) as broker:
        connection = connected(broker)
        pushes = list[bool]()
        for filler in sizes:
            connection.start(ProduceResponse, 9, body_of(filler))
            pushes.append(connection.push())
        go_on.set()
        waits = 0
        while not connection.push():
            select.select([], [connection], [], 20)
            waits += 1
        answers = [connection.next_answer(soon()) for _ in sizes]
        connection.close()

    assert [True, False, False] == pushes
    assert waits > 0
    assert [(ProduceResponse, 9)] * 3 == [(each.kind, each.version) for each in answers]
    assert sizes == [
        len(message.topic_data[0].partition_data[39].records) - len(b"header")
        for message in broker.named("Produce")
    ]


def test_a_connection_that_the_broker_has_closed_is_known_before_a_request_goes() -> None:
    """While nothing is in flight; an answer that has come is no sign of it."""
    with ScriptedBroker(answer("it")) as broker:
        connection = connected(broker)
        ended = [connection.has_ended]
        connection.send(request(), soon(), versions=VERSIONS)
        select.select([connection], [], [], 20)
        ended.append(connection.has_ended)
        connection.next_answer(soon())
        broker.disconnect()
        ended.append(connection.has_ended)
        connection.abort()

    assert [False, False, True] == ended


def test_a_login_is_renewed_before_its_session_ends(counting: ScriptedBroker) -> None:
    """KIP-368: on the same connection, and not while a request is in flight."""
    clock = Clock()
    deadline = Deadline(at=1_000, clock=clock)
    settings = WireSettings(addresses=(counting.address,), client_id="test", login=LOGIN)
    connection = WireConnection(*counting.address, settings, deadline)
    logins = []
    for clock.now in (1.0, 1.95, 2.0, 3.9):
        connection.send(request(), deadline, versions=VERSIONS)
        connection.send(request(), deadline, versions=VERSIONS)
        connection.next_answer(deadline)
        connection.next_answer(deadline)
        logins.append(len(counting.named("SaslAuthenticate")))
    connection.close()

    assert [1, 2, 2, 3] == logins
    assert 1 == len(counting.named("ApiVersions"))


def test_a_login_without_an_end_is_not_renewed() -> None:
    """A broker whose sessions do not end says 0, and an old one nothing."""

    def script(received: Received) -> object:
        if received.name == "SaslHandshake":
            return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])
        if received.name == "SaslAuthenticate":
            return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"")
        return answer("found")

    with ScriptedBroker(script, versions={36: (0, 0)}) as broker:
        clock = Clock()
        deadline = Deadline(at=1e6, clock=clock)
        settings = WireSettings(addresses=(broker.address,), client_id="test", login=LOGIN)
        connection = WireConnection(*broker.address, settings, deadline)
        clock.now = 9e5
        connection.ask(request(), deadline, versions=VERSIONS)
        connection.close()

        assert 1 == len(broker.named("SaslAuthenticate"))


def test_a_mechanism_that_the_broker_does_not_have_is_named() -> None:
    """With those that it has."""
    refusal = SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512"])
    with (
        ScriptedBroker(refusal) as broker,
        pytest.raises(LoginRefusedError, match="SCRAM-SHA-512, but not PLAIN"),
    ):
        connected(broker, login=LOGIN)


def test_a_port_without_logins_says_so() -> None:
    """Its broker offers no mechanism at all."""
    refusal = SaslHandshakeResponse(error_code=34, mechanisms=[])
    with ScriptedBroker(refusal) as broker:
        host, port = broker.address
        named = rf"{host}:{port} \(bootstrap\.servers\) takes no login on this port$"
        with pytest.raises(LoginRefusedError, match=named):
            connected(broker, login=LOGIN)


def test_a_port_without_tls_is_named_with_what_to_check() -> None:
    """It takes a handshake for a request that is too long, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_it() -> None:
            accepted, _ = server.accept()
            accepted.close()

        closing = threading.Thread(target=close_it)
        closing.start()
        host, port = server.getsockname()
        settings = WireSettings(
            addresses=((host, port),), client_id="test", tls=ssl.create_default_context()
        )
        named = rf"{host}:{port} .*did not open a TLS connection.* check security\.protocol$"
        with pytest.raises(ConnectionError, match=named):
            WireConnection(host, port, settings, soon())
        closing.join()


def alert(reason: str) -> ssl.SSLError:
    """As the broker's refusal of a certificate comes."""
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


def untrusted() -> ssl.SSLCertVerificationError:
    """As ours of the broker's certificate comes."""
    error = ssl.SSLCertVerificationError("self-signed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "ssl.keystore"),
        (untrusted(), "ssl.truststore"),
        (LoginRefusedError("no"), "sasl"),
        (urllib.error.HTTPError("url", 401, "Unauthorized", Message(), None), "client's id"),
    ],
)
def test_what_no_retry_resolves_is_told_at_once(error: Exception, advice: str) -> None:
    """With the settings to look at."""
    found = unresolvable(error, "a request", WireSettings(addresses=(), client_id="test"))

    assert isinstance(found, TaskFailedError)
    assert advice in str(found)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        ConnectionResetError(),
        TimeoutError(),
        alert("UNEXPECTED_EOF_WHILE_READING"),
        urllib.error.HTTPError("url", 503, "Unavailable", Message(), None),
    ],
)
def test_an_outage_is_waited_out(error: Exception) -> None:
    """A broker or a token's server that starts may answer the next time."""
    settings = WireSettings(addresses=(), client_id="test")

    assert unresolvable(error, "a request", settings) is None
