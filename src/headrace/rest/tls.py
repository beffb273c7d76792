"""TLS for listeners from Java's ``ssl.`` keys and key stores, in PEM and PKCS12."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.key_stores import Pkcs12, advice, form_of, load_cert_chain


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
    except ImportError:
        raise ValueError(
            "Reading PKCS12 needs: pip install 'headrace[pkcs12]'. Or convert the store to PEM "
            "with: openssl pkcs12 -in STORE -out STORE.pem"
        ) from None
    except ValueError:
        raise ValueError("The store cannot be opened as PKCS12 with this password.") from None
    return store.key(key_password) + store.certificates()


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
        key_password = self.props.get("ssl.key.password", "")
        inline = self.props.get("ssl.keystore.key")
        if inline is not None:
            chain = self.props.get("ssl.keystore.certificate.chain", "")
            pem = f"{inline}\n{chain}".encode()
        else:
            store = self._store("keystore")
            if store is None:
                problem = "An https listener needs a key and a certificate: a PEM or PKCS12 file."
                raise self._error("ssl.keystore.location", problem)
            pem = self._pem(store, "keystore")
        try:
            load_cert_chain(context, pem, key_password)
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
