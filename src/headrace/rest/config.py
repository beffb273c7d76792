"""The settings of the REST interface: Kafka Connect's, and two of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.connect.config import Config, Problem, setting
from headrace.rest.headers import header_rules
from headrace.rest.listener import Listener
from headrace.rest.login import CREDENTIALS_KEY
from headrace.rest.tls import TlsKeys

BASIC_AUTH: Final = (
    "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
)
"""The only REST extension that there is an equivalent of."""

TLS: Final = "listeners.https."
"""Where keys of TLS begin that are the listeners' alone, with all of Kafka's ``ssl.`` keys behind it."""

ADMIN_TLS: Final = "admin.listeners.https."
"""The same for admin listeners."""


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


def _rules(value: str) -> str | None:
    try:
        header_rules(value)
    except ValueError as error:
        return str(error)
    return None


class RestConfig(Config):
    """Where a worker answers requests, to whom, and how it tells others where it is."""

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
        doc="Where /admin/loggers is answered. Not set: with everything else; empty: nowhere.",
    )
    rest_advertised_host_name: str | None = setting(
        default=None,
        importance="low",
        doc="The host at which others reach this worker. Default: the listener's.",
    )
    rest_advertised_port: int | None = setting(
        default=None,
        importance="low",
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
        """Rules across settings, and extensions that there is nothing for."""
        for each in self.rest_extension_classes:
            if each != BASIC_AUTH:
                told = f"There is no equivalent of {each}; only {BASIC_AUTH} can be named."
                yield "rest.extension.classes", told
        if self.has_basic_auth and self.rest_basic_auth_credentials_file is None:
            told = "Name the file of users and passwords, which Kafka Connect is told of by JAAS."
            yield CREDENTIALS_KEY, told
        if self.rest_basic_auth_credentials_file is not None and not self.has_basic_auth:
            told = f"It has an effect only with rest.extension.classes={BASIC_AUTH}."
            yield CREDENTIALS_KEY, told

    @property
    def has_basic_auth(self) -> bool:
        """Whether users have to log in."""
        return BASIC_AUTH in self.rest_extension_classes

    def tls(self, prefix: str) -> TlsKeys:
        """The ``ssl.`` keys of the listeners of *prefix*: with it if there are any, otherwise without."""
        own = _of_tls(self.under(prefix))
        return TlsKeys(props=own, prefix=prefix) if own else TlsKeys(props=_of_tls(self.originals))


def _of_tls(props: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in props.items() if key.startswith("ssl.")}
