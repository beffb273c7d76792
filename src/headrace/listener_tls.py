"""TLS for a worker's listeners, those of requests and that of its tasks, from Java's ``ssl.`` keys and key stores, in PEM and PKCS12."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.key_stores import Pkcs12, advice, form_of, load_cert_chain, self_signed


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStore:
    """The bytes of a store's file."""

    content: bytes = field(repr=False)
    is_pkcs12: bool

    @classmethod
    def of(cls, content: bytes, declared: str | None, place: str) -> Self:
        """The store in *content*, of the *declared* type, or of the type that its bytes show.

        Raises ``ValueError`` for other types, with how to convert them.
        """
        kind = (declared or "JKS").strip().upper()
        # Java's default is JKS, under which Java also reads PKCS12.
        if kind == "JKS":
            kind = form_of(content)
        if kind not in {"PEM", "PKCS12"}:
            raise ValueError(
                f"Stores of type {kind} are not supported, only PEM and PKCS12. {advice(place)}"
            )
        return cls(content=content, is_pkcs12=kind == "PKCS12")


def pkcs12_as_pem(content: bytes, password: str, key_password: str) -> bytes:
    """The key (if any) and the certificates of a PKCS12 store, the key encrypted with *key_password*.

    Raises ``ValueError`` with a sentence.
    """
    try:
        store = Pkcs12(content, password.encode())
    except ValueError:
        raise ValueError("The store cannot be opened as PKCS12 with this password.") from None
    return store.key(key_password) + store.certificates()


LISTENERS: Final = "listeners.https."
"""The prefix of Kafka's ``ssl.`` keys for the listeners alone."""
_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_REFUSED = ("ssl.cipher.suites", "ssl.engine.factory.class", "ssl.provider")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsKeys:
    """The ``ssl.`` keys of listeners; errors name them with *prefix*."""

    props: Mapping[str, str]
    prefix: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str], prefix: str) -> Self:
        """Those of *given* with *prefix* if there are any, otherwise those without."""
        own = {key: value for key, value in given.items() if key.startswith(f"{prefix}ssl.")}
        if not own:
            return cls(props={key: given[key] for key in given if key.startswith("ssl.")})
        return cls(
            props={key.removeprefix(prefix): value for key, value in own.items()}, prefix=prefix
        )

    def context(self) -> ssl.SSLContext:
        """The server's TLS context. Raises ``ConfigError``, which shows no password."""
        for key in _REFUSED:
            if self.props.get(key):
                raise self._error(key, "This setting is not supported; leave it out.")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._limit(context)
        self._load_own(context)
        self._load_trusted(context)
        context.verify_mode = _CLIENT_AUTH[self._client_auth()]
        return context

    def pinned_context(self) -> tuple[ssl.SSLContext, bytes]:
        """The TLS context of a server whose clients know its certificate, and the SHA-256 of the certificate; without a key store it is a new one.

        Raises as :meth:`context`.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._limit(context)
        # Its clients do not resume sessions, and would have to read what it sends for that.
        context.num_tickets = 0
        pem = self._own_pem()
        if pem is None:
            pem = self_signed()
            load_cert_chain(context, pem, "")
        else:
            self._load(context, pem)
        return context, fingerprint_of(pem)

    def client_context(self) -> ssl.SSLContext:
        """The TLS context of a client of such a listener, which shows the listener's own certificate; raises as :meth:`context`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Java's workers compare names unless this is set to nothing.
        named = self.props.get("ssl.endpoint.identification.algorithm", "https").strip()
        context.check_hostname = bool(named)
        self._limit(context)
        self._load_own(context)
        self._load_trusted(context)
        if not context.get_ca_certs():
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context

    def _limit(self, context: ssl.SSLContext) -> None:
        names = self.props.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")
        unknown = [each.strip() for each in names if each.strip() not in _VERSIONS]
        if unknown:
            problem = f"{unknown[0]} is not supported; use TLSv1.2, TLSv1.3 or both."
            raise self._error("ssl.enabled.protocols", problem)
        versions = [_VERSIONS[each.strip()] for each in names]
        context.minimum_version, context.maximum_version = min(versions), max(versions)

    def _load_own(self, context: ssl.SSLContext) -> None:
        """The server's key and its certificates."""
        pem = self._own_pem()
        if pem is None:
            problem = "An https listener needs a key and a certificate: a PEM or PKCS12 file."
            raise self._error("ssl.keystore.location", problem)
        self._load(context, pem)

    def _own_pem(self) -> bytes | None:
        inline = self.props.get("ssl.keystore.key")
        if inline is not None:
            chain = self.props.get("ssl.keystore.certificate.chain", "")
            return f"{inline}\n{chain}".encode()
        store = self._store("keystore")
        return None if store is None else self._pem(store, "keystore")

    def _load(self, context: ssl.SSLContext, pem: bytes) -> None:
        try:
            load_cert_chain(context, pem, self.props.get("ssl.key.password", ""))
        except ValueError as error:
            raise self._error("ssl.keystore.location", str(error)) from None

    def _load_trusted(self, context: ssl.SSLContext) -> None:
        """The authorities that clients' certificates are checked against."""
        inline = self.props.get("ssl.truststore.certificates")
        store = self._store("truststore")
        if inline is None and store is None:
            if self._client_auth() != "none":
                context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
            return
        pem = inline if store is None else self._pem(store, "truststore").decode("ascii", "replace")
        try:
            context.load_verify_locations(cadata=pem or "")
        except (ssl.SSLError, ValueError):
            problem = "The store holds no certificates; it must be a PEM or PKCS12 file."
            raise self._error("ssl.truststore.location", problem) from None

    def _client_auth(self) -> str:
        given = self.props.get("ssl.client.auth", "none").strip().lower()
        if given not in _CLIENT_AUTH:
            raise self._error("ssl.client.auth", f"It must be one of {', '.join(_CLIENT_AUTH)}.")
        return given

    def _store(self, kind: str) -> KeyStore | None:
        location = self.props.get(f"ssl.{kind}.location")
        if not location:
            return None
        try:
            content = Path(location).read_bytes()
            return KeyStore.of(content, self.props.get(f"ssl.{kind}.type"), location)
        except OSError as error:
            problem = f"{location} cannot be read: {error.strerror}."
            raise self._error(f"ssl.{kind}.location", problem) from None
        except ValueError as error:
            raise self._error(f"ssl.{kind}.type", str(error)) from None

    def _pem(self, store: KeyStore, kind: str) -> bytes:
        if not store.is_pkcs12:
            return store.content
        try:
            password = self.props.get(f"ssl.{kind}.password", "")
            return pkcs12_as_pem(store.content, password, self.props.get("ssl.key.password", ""))
        except ValueError as error:
            raise self._error(f"ssl.{kind}.location", str(error)) from None

    def _error(self, key: str, sentence: str) -> ConfigError:
        problem: Problem = (f"{self.prefix}{key}", sentence)
        return ConfigError([problem], where="The worker's configuration")


def fingerprint_of(pem: bytes) -> bytes:
    """The SHA-256 of the first certificate in *pem*, which OpenSSL takes for the key's own. Pure."""
    found = _CERTIFICATE.search(pem)
    assert found is not None, "OpenSSL has loaded it"
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(found[0].decode())).digest()
