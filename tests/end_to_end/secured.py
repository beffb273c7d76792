"""A broker that speaks TLS and wants certificates and logins, and a Java worker's properties file for it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from headrace.broker import Broker
from headrace.broker import broker as ports
from rest.certificates import Certificate, certificate

CANARY = "canary-of-logins"
"""Every password; no one may read it anywhere."""

_LISTENER = "listener.name.secured"
_CERTIFIED = "listener.name.certified"
REAUTHENTICATE_MS = 2_000
"""How long a session lasts that a token has opened."""


@dataclass(frozen=True)
class Secured:
    """A broker with a listener for everybody, for judges, and one for those who can show who they are.

    At *certified* a certificate is enough. Logins are by PLAIN, SCRAM, and tokens that nobody has signed.
    """

    judges: str
    address: str
    certified: str
    folder: Path

    def worker_file(self) -> str:
        """What a Java worker has, for its own clients and for its connectors' producers.

        The worker logs in with SCRAM and has stores in PKCS12; the producers with PLAIN and PEM in the file.
        """
        package = "org.apache.kafka.common.security"
        trusted = _on_lines((self.folder / "broker.pem").read_text())
        certified = _on_lines((self.folder / "client.pem").read_text())
        key = _on_lines((self.folder / "client.key").read_text())
        return f"""
bootstrap.servers=SECURED://{self.address}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={package}.scram.ScramLoginModule required \\
  username="worker" password="{CANARY}";
ssl.truststore.location={self.folder / "trust.p12"}
ssl.truststore.password={CANARY}
ssl.keystore.location={self.folder / "client.p12"}
ssl.keystore.password={CANARY}
ssl.keystore.type=PKCS12
ssl.endpoint.identification.algorithm=https
producer.security.protocol=SASL_SSL
producer.sasl.mechanism=PLAIN
producer.sasl.jaas.config={package}.plain.PlainLoginModule required username="task" password="{CANARY}";
producer.ssl.truststore.type=PEM
producer.ssl.truststore.certificates={trusted}
producer.ssl.keystore.type=PEM
producer.ssl.keystore.certificate.chain={certified}
producer.ssl.keystore.key={key}
producer.ssl.key.password={CANARY}
consumer.security.protocol=SASL_SSL
consumer.ssl.truststore.location={self.folder / "trust.p12"}
"""


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """A running one, with the stores of its clients in *folder*."""
    chance = random.SystemRandom()
    plain, secured, certified, controller = sorted(chance.sample(range(20_000, 32_000), 4))
    found = Secured(
        judges=f"{ports.LOOPBACK}:{plain}",
        address=f"{ports.LOOPBACK}:{secured}",
        certified=f"{ports.LOOPBACK}:{certified}",
        folder=folder,
    )
    ours, theirs = certificate(), certificate()
    _write_stores(folder, ours, theirs)
    listeners = (
        f"PLAINTEXT://{found.judges},SECURED://{found.address},CERTIFIED://{found.certified}"
    )
    properties = {
        "listeners": f"{listeners},CONTROLLER://{ports.LOOPBACK}:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@{ports.LOOPBACK}:{controller}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL,CERTIFIED:SSL"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        **_logins(),
        **_stores(_LISTENER, folder),
        **_stores(_CERTIFIED, folder),
    }
    with Broker(folder / "broker", port=plain, properties=properties):
        _add_scram_user(found.judges)
        yield found


def _logins() -> dict[str, str]:
    package = "org.apache.kafka.common.security"
    plain = f"{package}.plain.PlainLoginModule"
    scram = f"{package}.scram.ScramLoginModule"
    token = f"{package}.oauthbearer.OAuthBearerLoginModule"
    return {
        f"{_LISTENER}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        f"{_LISTENER}.plain.sasl.jaas.config": f'{plain} required user_task="{CANARY}";',
        f"{_LISTENER}.scram-sha-512.sasl.jaas.config": f"{scram} required;",
        f"{_LISTENER}.oauthbearer.sasl.jaas.config": f"{token} required;",
        f"{_LISTENER}.oauthbearer.connections.max.reauth.ms": str(REAUTHENTICATE_MS),
    }


def _stores(listener: str, folder: Path) -> dict[str, str]:
    return {
        f"{listener}.ssl.client.auth": "required",
        f"{listener}.ssl.keystore.type": "PEM",
        f"{listener}.ssl.keystore.location": str(folder / "broker.store.pem"),
        f"{listener}.ssl.truststore.type": "PEM",
        f"{listener}.ssl.truststore.location": str(folder / "client.pem"),
    }


def _write_stores(folder: Path, broker: Certificate, client: Certificate) -> None:
    (folder / "broker.pem").write_text(broker.pem)
    (folder / "broker.store.pem").write_text(broker.key_pem() + broker.pem)
    (folder / "client.pem").write_text(client.pem)
    (folder / "client.key").write_text(client.key_pem(CANARY))
    (folder / "client.p12").write_bytes(client.pkcs12(CANARY))
    entry = pkcs12.PKCS12Certificate(broker.certificate, b"ca")
    hidden = BestAvailableEncryption(CANARY.encode())
    (folder / "trust.p12").write_bytes(pkcs12.serialize_java_truststore([entry], hidden))


def _add_scram_user(address: str) -> None:
    mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("worker", mechanism, CANARY.encode())
    admin = AdminClient({"bootstrap.servers": address})
    for each in admin.alter_user_scram_credentials([change]).values():
        each.result(timeout=30)


def _on_lines(pem: str) -> str:
    """PEM as a value in a properties file."""
    return pem.strip().replace("\n", " \\\n  ")
