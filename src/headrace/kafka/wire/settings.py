"""librdkafka's connection settings as what a socket needs: addresses, a TLS context, a login."""

from __future__ import annotations

import importlib
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import Settings, named_servers
from headrace.kafka.java_settings import connect_name
from headrace.key_stores import Pkcs12, load_cert_chain

CONNECTION_SETTINGS: Final = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "enable.ssl.certificate.verification",
        "https.ca.location",
        "receive.message.max.bytes",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "socket.timeout.ms",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)
"""What :func:`wire_settings` reads."""

_OAUTH: Final = "sasl.oauthbearer"
_WITH_TLS: Final = ("SSL", "SASL_SSL")
_WITH_LOGIN: Final = ("SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_TOKEN_SECONDS: Final = 10.0
# A token that ends sooner than this is replaced by the next login.
_SPARE_SECONDS: Final = 30.0
# As Java's clients: a session that a token opens ends with it, and is renewed with the next token.
_USED_PART: Final = 0.8
_DEFAULT_PORT: Final = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings:
    """How to reach a cluster.

    *login* holds the arguments of kafka-python's SASL mechanisms, ``None`` without a login; *tls* is ``None`` without TLS.
    *connect_seconds* is how long a connection may take, *request_seconds* how long an answer, after which another
    broker is tried. A longer answer than *max_answer_bytes* is refused before it is received. *rack* is where the client
    is, ``client.rack``.
    """

    addresses: tuple[tuple[str, int], ...]
    client_id: str
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    login: dict[str, Any] | None = field(default=None, repr=False)
    token_endpoint: str = ""
    rack: str = ""
    connect_seconds: float = 10.0
    request_seconds: float = 30.0
    max_answer_bytes: int = 100_000_000


def wire_settings(settings: Settings) -> WireSettings:
    """Translate librdkafka's *settings* for a socket.

    Reads key files. Raises :class:`~headrace.connect.errors.ConfigError` for settings without a counterpart; no
    message shows a secret.
    """
    protocol = str(settings.get("security.protocol", "plaintext")).strip().upper()
    if protocol not in _PROTOCOLS:
        # Not the value: whoever mixes two settings up has a password there.
        raise _refusal("security.protocol", f"It is one of {', '.join(_PROTOCOLS)}.")
    return WireSettings(
        addresses=_addresses(str(settings.get("bootstrap.servers", ""))),
        client_id=str(settings.get("client.id", "headrace")),
        tls=_context(settings) if protocol in _WITH_TLS else None,
        login=_login(settings) if protocol in _WITH_LOGIN else None,
        token_endpoint=str(settings.get(f"{_OAUTH}.token.endpoint.url", "")),
        rack=str(settings.get("client.rack", "")),
        connect_seconds=_number(settings, "socket.connection.setup.timeout.ms", 10_000) / 1000,
        request_seconds=_number(settings, "socket.timeout.ms", 30_000) / 1000,
        max_answer_bytes=_number(settings, "receive.message.max.bytes", 100_000_000),
    )


def _number(settings: Settings, key: str, default: int) -> int:
    given = settings.get(key, default)
    try:
        found = int(given)
    except ValueError:
        found = 0
    if found <= 0:
        raise _refusal(connect_name(key), f"{given!r} is not a positive whole number.")
    return found


def _addresses(servers: str) -> tuple[tuple[str, int], ...]:
    return tuple(map(_address, named_servers(servers)))


def _address(server: str) -> tuple[str, int]:
    # Java's clients take an address with a protocol, and pass over that.
    server = server.rpartition("://")[2]
    host, _, port = server.rpartition(":")
    # An IPv6 address without brackets has colons of its own.
    is_host = ":" not in host or host.endswith("]")
    if not (host and port.isdecimal() and is_host):
        return server.rstrip(":").strip("[]"), _DEFAULT_PORT
    return host.strip("[]"), int(port)


def _login(settings: Settings) -> dict[str, Any]:
    mechanism = str(settings.get("sasl.mechanisms", settings.get("sasl.mechanism", "GSSAPI")))
    # The protocol only serves a warning about passwords in plain text, which is the operator's choice.
    found: dict[str, Any] = {"sasl_mechanism": mechanism, "security_protocol": "SASL_SSL"}
    if mechanism in _WITH_PASSWORD:
        found["sasl_plain_username"] = settings.get("sasl.username", "")
        found["sasl_plain_password"] = settings.get("sasl.password", "")
    elif mechanism == "OAUTHBEARER":
        found["sasl_oauth_token_provider"] = _ClientCredentials(settings)
    elif mechanism == "GSSAPI":
        _require_gssapi()
        found["sasl_kerberos_service_name"] = settings.get("sasl.kerberos.service.name", "kafka")
    else:
        raise _refusal(
            "sasl.mechanism",
            f"{mechanism} is not supported; use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
        )
    return found


def _require_gssapi() -> None:
    try:
        importlib.import_module("gssapi")
    except (ImportError, OSError):
        raise _refusal(
            "sasl.mechanism",
            "GSSAPI needs the Python package gssapi (pip install gssapi), and a ticket in the cache of the user who runs "
            "this process (kinit).",
        ) from None


def _context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority, inline = settings.get("ssl.ca.location"), settings.get("ssl.ca.pem")
    try:
        if authority and str(authority) != "probe":
            _trust_only(context := ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), str(authority))
        elif inline:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=str(inline))
    except (OSError, ValueError) as error:
        raise _refusal(
            "ssl.truststore.location", f"The trust store cannot be used: {error}."
        ) from error
    algorithm = str(settings.get("ssl.endpoint.identification.algorithm", "https"))
    if algorithm.strip().lower() in ("", "none"):
        context.check_hostname = False
    if _is_false(settings.get("enable.ssl.certificate.verification", True)):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _restrict(context, settings)
    _load_own(context, settings)
    return context


def _restrict(context: ssl.SSLContext, settings: Settings) -> None:
    """Revoked certificates and ciphers."""
    if "ssl.crl.location" in settings:
        try:
            context.load_verify_locations(cafile=str(settings["ssl.crl.location"]))
        except OSError as error:
            reason = f"The list of revoked certificates cannot be used: {error}."
            raise _refusal("ssl.crl.location", reason) from error
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if "ssl.cipher.suites" in settings:
        try:
            context.set_ciphers(str(settings["ssl.cipher.suites"]))
        except ssl.SSLError as error:
            reason = "None of these ciphers is there; they have OpenSSL's names, with colons between them."
            raise _refusal("ssl.cipher.suites", reason) from error


def _trust_only(context: ssl.SSLContext, location: str) -> None:
    is_folder = Path(location).is_dir()
    context.load_verify_locations(
        cafile=None if is_folder else location, capath=location if is_folder else None
    )


def _load_own(context: ssl.SSLContext, settings: Settings) -> None:
    """The client's own certificate and key, if it has one."""
    password = str(settings.get("ssl.key.password", ""))
    pem = _own_pem(settings, password)
    if pem is None:
        return
    try:
        load_cert_chain(context, pem, password)
    except ValueError as error:
        raise _refusal("ssl.keystore.location", str(error)) from None


def _own_pem(settings: Settings, password: str) -> bytes | None:
    store = settings.get("ssl.keystore.location")
    if store:
        return _from_pkcs12(str(store), str(settings.get("ssl.keystore.password", "")), password)
    if "ssl.key.pem" in settings:
        return f"{settings['ssl.key.pem']}\n{settings.get('ssl.certificate.pem', '')}\n".encode()
    if "ssl.key.location" not in settings:
        return None
    key = _content(str(settings["ssl.key.location"]))
    certificate = _content(str(settings.get("ssl.certificate.location", "")))
    return key if key == certificate else key + b"\n" + certificate


def _content(location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        reason = f"The file {location!r} cannot be read: {error.strerror}."
        raise _refusal("ssl.keystore.location", reason) from error


def _from_pkcs12(location: str, store_password: str, key_password: str) -> bytes:
    try:
        store = Pkcs12(_content(location), store_password.encode() or None)
    except ValueError:
        raise _refusal(
            "ssl.keystore.location",
            f"The file {location!r} cannot be opened as PKCS12 with ssl.keystore.password.",
        ) from None
    return store.key(key_password) + b"\n" + store.certificates()


class _ClientCredentials(AbstractTokenProvider):
    """Tokens from ``sasl.oauthbearer.token.endpoint.url``, for the client's id and secret; kept until they expire."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._url = str(settings.get("sasl.oauthbearer.token.endpoint.url", ""))
        self._id, self._secret = (
            str(settings.get(f"{_OAUTH}.client.credentials.client.{each}", ""))
            or str(settings.get(f"{_OAUTH}.client.{each}", ""))
            for each in ("id", "secret")
        )
        self._scope = str(settings.get("sasl.oauthbearer.scope", ""))
        self._extensions = str(settings.get("sasl.oauthbearer.extensions", ""))
        authority = str(settings.get("https.ca.location", "probe"))
        try:
            self._tls = ssl.create_default_context(
                cafile=None if authority == "probe" else authority
            )
        except OSError as error:
            raise _refusal(
                "https.ca.location", f"The certificates cannot be used: {error}."
            ) from error
        self._token, self._ends_at = "", 0.0
        if not (self._url and self._id and self._secret):
            raise _refusal(
                "sasl.mechanism",
                "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, and a client's id and "
                "secret; other ways to get a token are not supported.",
            )

    def token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride] (it is documented so)
        """A token that is valid now."""
        if time.monotonic() >= self._ends_at:
            answer = self._requested()
            if "access_token" not in answer:
                raise ValueError(f"{self._url} answered without an access_token")
            self._token = str(answer["access_token"])
            lasts = float(answer.get("expires_in", 0.0))
            self._ends_at = time.monotonic() + min(lasts - _SPARE_SECONDS, lasts * _USED_PART)
        return self._token

    def extensions(self) -> dict[str, str]:
        """The SASL extensions of the login, as configured."""
        pairs = (each.partition("=") for each in self._extensions.split(",") if each)
        return {key: value for key, _, value in pairs}

    def _requested(self) -> dict[str, Any]:
        form = {
            "grant_type": "client_credentials",
            **({"scope": self._scope} if self._scope else {}),
        }
        login = b64encode(f"{self._id}:{self._secret}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 (the worker's own configuration names it)
            self._url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {login}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=_TOKEN_SECONDS, context=self._tls
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            # It is the answer, too, and open.
            error.close()
            raise


def _is_false(value: object) -> bool:
    return str(value).strip().lower() in ("false", "f", "0")


def _refusal(key: str, reason: str) -> ConfigError:
    return ConfigError([(key, reason)], where="The Kafka client's configuration")
