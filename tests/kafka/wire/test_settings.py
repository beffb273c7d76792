"""Connections of our own: what librdkafka's settings mean to them, and how they end."""

from __future__ import annotations

import socket
import ssl
import sys
from pathlib import Path

import pytest

from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.transaction_coordinator import TransactionCoordinator
from headrace.kafka.wire.settings import wire_settings


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("a:1, b:2", (("a", 1), ("b", 2))),
        ("a", (("a", 9092),)),
        ("a:", (("a", 9092),)),
        ("[::1]:7", (("::1", 7),)),
        ("::1", (("::1", 9092),)),
        ("PLAINTEXT://a:1", (("a", 1),)),
    ],
)
def test_addresses_are_those_that_the_client_library_takes(
    servers: str, addresses: tuple[tuple[str, int], ...]
) -> None:
    """Also without a port, and of IPv6."""
    assert addresses == wire_settings({"bootstrap.servers": servers}).addresses


@pytest.mark.parametrize("protocol", ["SASL-SSL", "SASLSSL", "TLS", ""])
def test_an_unknown_protocol_is_not_taken_for_plaintext(protocol: str) -> None:
    """Neither is a password sent in clear, nor are records read without one."""
    with pytest.raises(ConfigError, match=r"security\.protocol.*PLAINTEXT, SSL"):
        wire_settings({"security.protocol": protocol, "sasl.mechanisms": "PLAIN"})


@pytest.mark.parametrize("key", ["ssl.cipher.suites", "ssl.crl.location"])
def test_restrictions_that_cannot_be_met_are_named(key: str) -> None:
    """As what they are: a wrong setting."""
    with pytest.raises(ConfigError, match=key):
        wire_settings({"security.protocol": "SSL", key: "/nothing"})


@pytest.mark.parametrize("off", ["", "none", "None"])
def test_names_of_hosts_are_checked_unless_that_is_off(off: str) -> None:
    """By default they are, as is the certificate."""
    secure = wire_settings({"security.protocol": "ssl"}).tls
    lax = wire_settings(
        {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": off}
    ).tls

    assert secure is not None
    assert lax is not None
    assert [True, False] == [secure.check_hostname, lax.check_hostname]
    assert [ssl.CERT_REQUIRED] * 2 == [secure.verify_mode, lax.verify_mode]


@pytest.mark.parametrize("off", ["false", "0", "f"])
def test_certificates_are_not_checked_where_that_is_off(off: str) -> None:
    """In the client library's words."""
    tls = wire_settings(
        {"security.protocol": "ssl", "enable.ssl.certificate.verification": off}
    ).tls

    assert tls is not None
    assert ssl.CERT_NONE == tls.verify_mode


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("ssl.truststore.location", {"security.protocol": "ssl", "ssl.ca.location": "/none"}),
        ("ssl.keystore.location", {"security.protocol": "ssl", "ssl.key.location": "/none"}),
        ("sasl.mechanism", {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "OTHER"}),
        ("socket.timeout.ms", {"socket.timeout.ms": "0"}),
        ("receive.message.max.bytes", {"receive.message.max.bytes": "-5"}),
        (
            "https.ca.location",
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanisms": "OAUTHBEARER",
                "https.ca.location": "/none",
            },
        ),
    ],
)
def test_what_cannot_be_used_is_named(key: str, settings: dict[str, str]) -> None:
    """At once, and not as an outage that is waited out."""
    coordinator = TransactionCoordinator(
        producer_config({"bootstrap.servers": "127.0.0.1:1", **settings})
    )

    with pytest.raises(ConfigError, match=key):
        coordinator.take("g-c-driver", Deadline.after(30))


def test_limits_are_those_of_the_client_library() -> None:
    """In its words, and with its numbers where it has good ones."""
    given = wire_settings(
        {
            "socket.connection.setup.timeout.ms": 1_500,
            "socket.timeout.ms": "2500",
            "receive.message.max.bytes": "1000000",
        }
    )
    default = wire_settings({})

    assert (1.5, 2.5, 1_000_000) == (
        given.connect_seconds,
        given.request_seconds,
        given.max_answer_bytes,
    )
    assert (10, 30, 100_000_000) == (
        default.connect_seconds,
        default.request_seconds,
        default.max_answer_bytes,
    )


def test_kerberos_needs_a_package_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither client's wheels have it; it is the default of Kafka's settings."""
    monkeypatch.setitem(sys.modules, "gssapi", None)

    with pytest.raises(ConfigError, match="pip install gssapi"):
        wire_settings({"security.protocol": "sasl_ssl"})


def test_a_request_that_was_given_up_does_not_arrive_later() -> None:
    """It would take the id from whoever has asked again; what the system has not delivered is thrown away."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        coordinator = TransactionCoordinator(
            producer_config({"bootstrap.servers": f"127.0.0.1:{port}"})
        )
        with pytest.raises(RetriableError, match="InitProducerId of 'g-c-driver'"):
            coordinator.take("g-c-driver", Deadline.after(0.2))
        accepted, _ = server.accept()
        with accepted, accepted.makefile("rb") as arrived, pytest.raises(ConnectionResetError):
            arrived.read()


def test_a_certificate_that_is_not_trusted_is_no_outage(tmp_path: Path) -> None:
    """It is told at once, with the settings to look at."""
    from concurrent.futures import ThreadPoolExecutor

    from rest.certificates import certificate

    ours = certificate()
    (tmp_path / "key.pem").write_text(ours.key_pem() + ours.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "key.pem")

    def serve(server: socket.socket) -> None:
        accepted, _ = server.accept()
        with accepted, pytest.raises(ssl.SSLError):
            context.wrap_socket(accepted, server_side=True)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        served = threads.submit(serve, server)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        client = producer_config({"bootstrap.servers": address, "security.protocol": "SSL"})
        with pytest.raises(TaskFailedError, match="is not trusted"):
            TransactionCoordinator(client).take("g-c-driver", Deadline.after(30))
        served.result(30)
