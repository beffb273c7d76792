"""The settings of the REST interface: Kafka Connect's, and two of our own; listeners, logins and TLS from them."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from headrace.connect.config import Config, Problem, every_problem, setting
from headrace.connect.errors import ConfigError
from headrace.listener_tls import LISTENERS as TLS
from headrace.listener_tls import TlsKeys
from headrace.rest.login import CREDENTIALS_KEY, BasicLogin, passwords_in
from headrace.rest.middleware import header_rules
from headrace.rest.request import in_url

_FORM = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]{1,9})")
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """*host* is empty for all interfaces, an IPv6 address without brackets; *port* is 0 for a free one."""

    protocol: str
    host: str
    port: int

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The listener that *text* names. Raises ``ValueError`` with Kafka Connect's sentence."""
        match = _FORM.fullmatch(text)
        if not match:
            raise ValueError("Listener doesn't have the right format (protocol://hostname:port).")
        protocol, host, port = match[1].lower(), match[2], int(match[3])
        if protocol not in {"http", "https"}:
            raise ValueError('Listener protocol must be either "http" or "https".')
        if not 0 <= port <= _LAST_PORT:
            raise ValueError(f"The port of a listener must be between 0 and {_LAST_PORT}.")
        return cls(protocol=protocol, host=host, port=port)

    def __str__(self) -> str:
        return f"{self.protocol}://{in_url(self.host)}:{self.port}"


BASIC_AUTH: Final = (
    "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
)
"""The only REST extension that has an equivalent here."""


ADMIN_TLS: Final = "admin.listeners.https."
"""The same prefix for admin listeners."""
_HOST: Final = re.compile(r"[\w.~-]+|\[[0-9A-Fa-f:.%\w]+\]|[0-9A-Fa-f]*(:[0-9A-Fa-f.]*){2,}(%\w+)?")


def _listeners(value: tuple[str, ...] | None) -> str | None:
    try:
        for each in value or ():
            Listener.parsed(each)
    except ValueError as error:
        return str(error)
    return None


def _some_listeners(value: tuple[str, ...]) -> str | None:
    if not value:
        return "expected list of URLs, ex: http://localhost:8080,https://localhost:8443"
    return _listeners(value)


def _host(value: str | None) -> str | None:
    if value is None or _HOST.fullmatch(value):
        return None
    return "expected the name or the address of a host alone, without protocol, port or path"


def _port(value: int | None) -> str | None:
    return None if value is None or 0 < value <= _LAST_PORT else f"expected 1 to {_LAST_PORT}"


def _rules(value: str) -> str | None:
    try:
        header_rules(value)
    except ValueError as error:
        return str(error)
    return None


class RestConfig(Config):
    """Where a worker answers requests, to whom, and which address it advertises."""

    listeners: tuple[str, ...] = setting(
        default=("http://:8083",),
        importance="low",
        valid=_some_listeners,
        doc="Where the REST API listens, as http://host:port or https://host:port, separated by "
        "commas. No host means all interfaces, port 0 a free one.",
    )
    admin_listeners: tuple[str, ...] | None = setting(
        default=None,
        importance="low",
        valid=_listeners,
        doc="Where /admin/loggers and /admin/workers are answered. Not set: with everything else; empty: nowhere.",
    )
    rest_advertised_host_name: str | None = setting(
        default=None,
        importance="low",
        valid=_host,
        doc="The host at which others reach this worker. Default: the listener's.",
    )
    rest_advertised_port: int | None = setting(
        default=None,
        importance="low",
        valid=_port,
        doc="The port at which others reach this worker. Default: the listener's.",
    )
    rest_advertised_listener: str | None = setting(
        default=None,
        importance="low",
        one_of=("http", "https"),
        ignore_case=True,
        doc="Which protocol others use to reach this worker.",
    )
    access_control_allow_origin: str = setting(
        default="",
        importance="low",
        doc="Web sites whose pages may use the REST API, separated by commas; * means all.",
    )
    access_control_allow_methods: str = setting(
        default="",
        importance="low",
        doc="Methods that such pages may use. Default: GET, POST and HEAD.",
    )
    response_http_headers_config: str = setting(
        default="",
        importance="low",
        valid=_rules,
        doc="Headers to add to every answer, as rules [action] [name]:[value] separated by commas, "
        "with the actions set, add, setDate and addDate.",
    )
    rest_extension_classes: tuple[str, ...] = setting(
        default=(),
        importance="low",
        doc=f"{BASIC_AUTH} lets in only users of {CREDENTIALS_KEY}; there is no other.",
    )
    rest_basic_auth_credentials_file: str | None = setting(
        default=None,
        non_empty=True,
        doc="The users of the REST API, one user=password a line.",
    )
    ssl_client_auth: str = setting(
        default="none",
        importance="low",
        one_of=("required", "requested", "none"),
        doc="Whether https clients have to show a certificate. The keys of TLS are Kafka's ssl.*, or "
        "if there are any listeners.https.ssl.* and admin.listeners.https.ssl.*.",
    )
    max_body_bytes: int = setting(
        "headrace.rest.max.body.bytes",
        default=32 * 1024 * 1024,
        importance="low",
        at_least=1024,
        doc="The largest body of a request that is read.",
    )

    def check(self) -> Iterator[Problem]:
        """Rules across settings, and extensions that have no equivalent here."""
        for each in self.rest_extension_classes:
            if each != BASIC_AUTH:
                problem = f"{each} is not supported; only {BASIC_AUTH} can be used."
                yield "rest.extension.classes", problem
        if self.has_basic_auth and self.rest_basic_auth_credentials_file is None:
            problem = "Set the file of users and passwords, which Kafka Connect takes from its JAAS configuration."
            yield CREDENTIALS_KEY, problem
        if self.rest_basic_auth_credentials_file is not None and not self.has_basic_auth:
            problem = f"This setting has an effect only with rest.extension.classes={BASIC_AUTH}."
            yield CREDENTIALS_KEY, problem

    @property
    def has_basic_auth(self) -> bool:
        """Whether users have to log in."""
        return BASIC_AUTH in self.rest_extension_classes

    def login(self) -> BasicLogin | None:
        """The users who may log in; ``None`` if no login is required. Raises as ``passwords_in``."""
        file = self.rest_basic_auth_credentials_file
        return BasicLogin(passwords_in(Path(file))) if self.has_basic_auth and file else None

    def tls_contexts(self) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
        """The TLS contexts of the listeners and of the admin listeners; ``None`` if none of them has https.

        Raises :class:`~headrace.connect.errors.ConfigError` for stores that cannot be read.
        """
        return (
            self._tls_context(TLS, self.listeners),
            self._tls_context(ADMIN_TLS, self.admin_listeners or ()),
        )

    def trust_context(self) -> ssl.SSLContext | None:
        """The TLS context for requests to other workers at https; ``None`` if no listener has https. Raises as ``tls_contexts``."""
        keys = TlsKeys.of(self.originals, TLS)
        return keys.client_context() if _have_https(self.listeners) else None

    def _tls_context(self, prefix: str, listeners: Sequence[str]) -> ssl.SSLContext | None:
        return TlsKeys.of(self.originals, prefix).context() if _have_https(listeners) else None


def _have_https(listeners: Sequence[str]) -> bool:
    return any(each.lower().startswith("https:") for each in listeners)


def rest_problems(props: Mapping[str, str]) -> tuple[Problem, ...]:
    """All problems of the settings of the REST interface; reads the files of users and of keys."""
    return every_problem(RestConfig, props, _unreadable)


def _unreadable(config: RestConfig) -> Iterator[Problem]:
    for read in (config.login, config.tls_contexts):
        try:
            read()
        except ConfigError as error:
            yield from error.problems
