"""TLS, certificates and logins of our own connections, on a real broker."""

from __future__ import annotations

import json
import threading
import time
import uuid
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from end_to_end.secured import CANARY, REAUTHENTICATE_MS, Secured, secured_broker
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.admin import UNREACHABLE, KafkaAdmin
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import LATEST, Cluster
from headrace.kafka.wire.fetcher import Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.producer import WireProducer
from headrace.kafka.wire.producer_settings import producer_wire_settings
from headrace.kafka.wire.settings import wire_settings
from record_batches import Row, batch

pytestmark = pytest.mark.broker

MODULE = "org.apache.kafka.common.security"
PLAIN = f'{MODULE}.plain.PlainLoginModule required username="task" password="{{}}";'
SCRAM = f'{MODULE}.scram.ScramLoginModule required username="worker" password="{{}}";'
TOKEN = (
    f'{MODULE}.oauthbearer.OAuthBearerLoginModule required clientId="{{}}" clientSecret="{CANARY}";'
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker of the module's own."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture
def place(secured: Secured) -> TopicPartition:
    """A partition with three records."""
    topic = f"secured-{uuid.uuid4().hex[:8]}"
    config = {"bootstrap.servers": secured.judges}
    admin = AdminClient(config)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer(config)
    for value in (b"1", b"2", b"3"):
        producer.produce(topic, value)
    producer.flush()
    return TopicPartition(topic, 0)


@pytest.fixture
def tokens() -> Iterator[str]:
    """The address of a server that issues tokens that end within a minute, to the client "task"."""
    with HTTPServer(("127.0.0.1", 0), Tokens) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


class Tokens(BaseHTTPRequestHandler):
    """Issues tokens without a signature, which the broker of the tests takes."""

    def do_POST(self) -> None:
        """A token, or a refusal."""
        self.rfile.read(int(self.headers["Content-Length"]))
        is_known = self.headers["Authorization"] == f"Basic {_basic('task', CANARY)}"
        now = int(time.time())
        claims = {"sub": "task", "iat": now, "exp": now + 60}
        token = ".".join([_encoded({"alg": "none"}), _encoded(claims), ""])
        answer = json.dumps({"access_token": token, "expires_in": 60}).encode()
        self.send_response(200 if is_known else 401)
        self.end_headers()
        self.wfile.write(answer if is_known else b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the method's own)
        """Nothing."""


def _basic(name: str, secret: str) -> str:
    return b64encode(f"{name}:{secret}".encode()).decode()


def _encoded(part: dict[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def soon(seconds: float = 30) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def certified(secured: Secured) -> dict[str, str]:
    """Settings of Java's clients that show a certificate."""
    return {
        "security.protocol": "SSL",
        "bootstrap.servers": secured.certified,
        "ssl.truststore.location": str(secured.folder / "trust.p12"),
        "ssl.truststore.password": CANARY,
        "ssl.truststore.type": "PKCS12",
        "ssl.keystore.location": str(secured.folder / "client.p12"),
        "ssl.keystore.password": CANARY,
        "ssl.keystore.type": "PKCS12",
    }


def logged_in(secured: Secured, mechanism: str, jaas: str, **settings: str) -> dict[str, str]:
    """Settings of Java's clients that show a certificate and log in."""
    return {
        **certified(secured),
        "security.protocol": "SASL_SSL",
        "bootstrap.servers": secured.address,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
        **settings,
    }


def of(properties: dict[str, str]) -> Cluster:
    """A client with these settings."""
    return Cluster(wire_settings(client_config(properties).settings))


def read(cluster: Cluster, place: TopicPartition) -> int:
    """How many records there are, all of which are fetched."""
    fetcher = Fetcher(cluster, [FetchRange(place=place, start=0, end=3)])
    count = 0
    while not fetcher.finished:
        for found in fetcher.poll(soon()):
            count += sum(each.record_count for each in found.headers)
    fetcher.close()
    cluster.close()
    return count


def test_a_certificate_is_shown(secured: Secured, place: TopicPartition) -> None:
    """Mutual TLS without a login."""
    assert 3 == read(of(certified(secured)), place)


@pytest.mark.parametrize(
    ("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)], ids=["plain", "scram"]
)
def test_a_password_is_shown(
    secured: Secured, place: TopicPartition, mechanism: str, jaas: str
) -> None:
    """Over TLS, by a JAAS line."""
    assert 3 == read(of(logged_in(secured, mechanism, jaas.format(CANARY))), place)


@pytest.mark.parametrize(
    ("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)], ids=["plain", "scram"]
)
def test_a_wrong_password_says_so_within_seconds(
    secured: Secured, mechanism: str, jaas: str
) -> None:
    """And is not in the message."""
    cluster = of(logged_in(secured, mechanism, jaas.format("wrong-canary")))
    began = time.monotonic()
    with pytest.raises(TaskFailedError, match=r"sasl\.") as refused:
        cluster.metadata(None, soon())
    cluster.close()

    assert time.monotonic() - began < 10
    assert "canary" not in str(refused.value)


def test_a_token_is_fetched_and_shown(secured: Secured, place: TopicPartition, tokens: str) -> None:
    """With a client's credentials, over HTTP."""
    properties = logged_in(
        secured,
        "OAUTHBEARER",
        TOKEN.format("task"),
        **{"sasl.oauthbearer.token.endpoint.url": tokens},
    )

    assert 3 == read(of(properties), place)


def test_records_are_sent_over_tls(secured: Secured, place: TopicPartition) -> None:
    """In requests that the system takes in many pieces."""
    config = producer_config(logged_in(secured, "PLAIN", PLAIN.format(CANARY)))
    cluster = Cluster(wire_settings(config.settings))
    producer = WireProducer(
        cluster,
        transactional_id=None,
        settings=producer_wire_settings(config.settings),
        owner="task c-0",
    )
    other = TopicPartition(place.topic, 0)
    before = cluster.list_offsets({other: LATEST}, soon())[other].offset or 0
    producer.open(soon())
    rows = [Row(0, 1_700_000_000_000, None, bytes(900_000))]
    for _ in range(8):
        producer.send(other, UnstampedBatch(batch(rows), 1))
    producer.flush()
    after = cluster.list_offsets({other: LATEST}, soon())[other].offset or 0
    producer.close()
    cluster.close()

    assert 8 == after - before


def test_a_producer_logs_in_again(secured: Secured, place: TopicPartition, tokens: str) -> None:
    """KIP-368: between requests, once all are answered."""
    properties = logged_in(
        secured,
        "OAUTHBEARER",
        TOKEN.format("task"),
        **{"sasl.oauthbearer.token.endpoint.url": tokens},
    )
    config = producer_config(properties)
    cluster = Cluster(wire_settings(config.settings))
    producer = WireProducer(
        cluster,
        transactional_id=None,
        settings=producer_wire_settings(config.settings),
        owner="task c-0",
    )
    producer.open(soon())
    rows = [Row(0, 1_700_000_000_000, None, b"value")]
    connections = set[int]()
    ends = time.monotonic() + 2.2 * REAUTHENTICATE_MS / 1000
    while time.monotonic() < ends:
        producer.send(place, UnstampedBatch(batch(rows), 1))
        producer.flush()
        connections |= {id(each.connection) for each in producer._delivery._leaders.values()}
    producer.close()
    cluster.close()

    assert 1 == len(connections)


def test_a_session_goes_on_with_another_login(
    secured: Secured, place: TopicPartition, tokens: str
) -> None:
    """KIP-368: a connection is kept for longer than the broker lets a session last."""
    properties = logged_in(
        secured,
        "OAUTHBEARER",
        TOKEN.format("task"),
        **{"sasl.oauthbearer.token.endpoint.url": tokens},
    )
    cluster = of(properties)
    fetcher = Fetcher(cluster, [FetchRange(place=place, start=0)], FetchSettings(max_wait_ms=100))
    assert fetcher.poll(soon())
    [leader] = fetcher._leaders.values()
    connection, ends = leader.connection, time.monotonic() + 2.2 * REAUTHENTICATE_MS / 1000
    while time.monotonic() < ends:
        assert [] == fetcher.poll(soon(1))
    is_the_same = leader.connection is connection
    fetcher.close()
    cluster.close()

    assert is_the_same


def test_a_client_without_a_token_says_so_within_seconds(secured: Secured, tokens: str) -> None:
    """With the address that refused it."""
    properties = logged_in(
        secured,
        "OAUTHBEARER",
        TOKEN.format("stranger"),
        **{"sasl.oauthbearer.token.endpoint.url": tokens},
    )
    cluster = of(properties)
    with pytest.raises(TaskFailedError, match="refused to issue a token") as refused:
        cluster.metadata(None, soon())
    cluster.close()

    assert CANARY not in str(refused.value)


def test_a_client_without_a_certificate_says_so_within_seconds(secured: Secured) -> None:
    """With the settings to look at."""
    properties = {key: value for key, value in certified(secured).items() if "keystore" not in key}
    cluster = of(properties)
    began = time.monotonic()
    with pytest.raises(TaskFailedError, match=r"ssl\.keystore"):
        cluster.metadata(None, soon())
    cluster.close()

    assert time.monotonic() - began < 10


def test_a_client_without_tls_says_so_within_seconds(secured: Secured) -> None:
    """It has asked a port that wants TLS."""
    cluster = of({"bootstrap.servers": secured.certified})
    with pytest.raises(TaskFailedError, match=r"TLS.*security\.protocol"):
        cluster.metadata(None, soon(10))
    cluster.close()


def test_a_client_without_a_login_is_told_that_one_may_be_wanted(secured: Secured) -> None:
    """The broker only closes the connection, as it does when it stops."""
    cluster = of({**certified(secured), "bootstrap.servers": secured.address})
    with pytest.raises(RetriableError, match=r"wants a login; check security\.protocol"):
        cluster.metadata(None, soon(1))
    cluster.close()


def test_a_broker_that_is_not_trusted_says_so_within_seconds(secured: Secured) -> None:
    """With the settings to look at."""
    properties = {
        key: value for key, value in certified(secured).items() if "truststore" not in key
    }
    cluster = of(properties)
    with pytest.raises(TaskFailedError, match=r"ssl\.truststore"):
        cluster.metadata(None, soon())
    cluster.close()


def start_failures(secured: Secured) -> dict[str, tuple[dict[str, str], str]]:
    """Settings with which no worker starts, and what it has to say about them."""
    password = PLAIN.format(CANARY)
    plain = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": password}
    unencrypted = {"security.protocol": "SASL_PLAINTEXT", **plain}
    return {
        "login without TLS": (
            {**unencrypted, "bootstrap.servers": secured.address},
            rf"{secured.address} \(bootstrap\.servers\) wants TLS on this port\. Check security\.protocol",
        ),
        "nothing where TLS is wanted": (
            {"bootstrap.servers": secured.certified},
            rf"{secured.certified} \(bootstrap\.servers\) wants TLS on this port\. Check security\.protocol",
        ),
        "login where none is taken": (
            {**unencrypted, "bootstrap.servers": secured.judges},
            r"takes no login on this port\. Check security\.protocol",
        ),
        "wrong password": (
            logged_in(secured, "PLAIN", PLAIN.format("wrong-canary")),
            r"Invalid username or password\. Check security\.protocol and the sasl\.",
        ),
    }


@pytest.mark.parametrize(
    "case",
    [
        "login without TLS",
        "nothing where TLS is wanted",
        "login where none is taken",
        "wrong password",
    ],
)
def test_what_no_retry_resolves_ends_the_start_with_its_cause(secured: Secured, case: str) -> None:
    """The client library retries for ever, and of some causes only says that brokers are down."""
    settings, sentence = start_failures(secured)[case]
    admin = KafkaAdmin(client_config(settings))
    with pytest.raises(TaskFailedError, match=sentence) as refused:
        admin.check_reachable(soon(2))

    assert str(refused.value).startswith(f"{UNREACHABLE} Kafka refused a connection: ")
    assert "brokers are down" not in str(admin.last_error)
    assert "canary" not in str(refused.value)


def test_a_start_with_tls_is_told_that_the_port_has_none(secured: Secured) -> None:
    """A broker that stops looks the same, so the start goes on waiting."""
    admin = KafkaAdmin(client_config({**certified(secured), "bootstrap.servers": secured.judges}))
    with pytest.raises(RetriableError):
        admin.check_reachable(soon(2))

    assert "PLAINTEXT broker listener" in str(admin.last_error)


def test_a_start_without_a_login_is_told_that_one_may_be_wanted(secured: Secured) -> None:
    """The client library only says that brokers are down."""
    admin = KafkaAdmin(client_config({**certified(secured), "bootstrap.servers": secured.address}))
    with pytest.raises(RetriableError):
        admin.check_reachable(soon(2))

    assert "wants a login; check security.protocol" in str(admin.last_error)
