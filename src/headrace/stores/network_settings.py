"""The settings that stores have in common which are asked over a network.

Each function declares one of them for the store whose keys begin with *store*.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import urlsplit

from headrace.connect.config import Problem
from headrace.connect.setting import SettingType, setting
from headrace.stores.connecting import Connecting
from headrace.stores.retries import Retries


class NetworkConfig(Protocol):
    """A configuration that declares every setting of this module."""

    @property
    def verify_tls(self) -> bool: ...  # noqa: D102 (the settings below say what each is)
    @property
    def ca_file(self) -> str | None: ...  # noqa: D102
    @property
    def connect_timeout_ms(self) -> int: ...  # noqa: D102
    @property
    def read_timeout_ms(self) -> int: ...  # noqa: D102
    @property
    def retries(self) -> int: ...  # noqa: D102
    @property
    def backoff_ms(self) -> int: ...  # noqa: D102
    @property
    def backoff_max_ms(self) -> int: ...  # noqa: D102


def retries_of(config: NetworkConfig) -> Retries:
    """How often and how patiently *config* wants failures tried again."""
    return Retries(
        attempts=config.retries + 1,
        first_seconds=config.backoff_ms / 1000,
        longest_seconds=config.backoff_max_ms / 1000,
    )


def connecting_of(config: NetworkConfig, store: str) -> Connecting:
    """How *config* wants the server reached."""
    return Connecting(
        connect_seconds=config.connect_timeout_ms / 1000,
        read_seconds=config.read_timeout_ms / 1000,
        verify=config.verify_tls,
        ca_file=config.ca_file,
        ca_setting=f"{store}.tls.ca.file",
    )


def endpoint_problems(key: str, url: str | None) -> Iterator[Problem]:
    """What is wrong with *url* as the endpoint that *key* sets; ``None`` is none.

    Asked by a configuration's ``check``: a setting's own validation would show the value, which may hold
    a password or a signature.
    """
    if url is not None and not is_endpoint(url):
        yield key, _ENDPOINT_ADVICE


def tls_problems(config: NetworkConfig, store: str) -> Iterator[Problem]:
    """What is wrong with whom *config* trusts."""
    if config.ca_file and not config.verify_tls:
        yield f"{store}.tls.ca.file", f"No certificates are used while {store}.tls.verify is false."


_ENDPOINT_ADVICE = (
    "Begin with http:// or https:// and the server's name, and give no user, password, query or fragment. "
    "Credentials have settings of their own."
)


def is_endpoint(url: str) -> bool:
    """Whether *url* is the address of a server, and nothing that it should not be."""
    if not url.startswith(("http://", "https://")) or set("@?#") & set(url):
        return False
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def page_size(store: str, most: int) -> Any:  # noqa: ANN401 (a field's type is its annotation, here and below)
    """How many keys a page lists, *most* at most."""
    return setting(
        f"{store}.page.size",
        default=1000,
        at_least=1,
        at_most=most,
        doc="How many keys a page lists.",
    )


def verify_tls(store: str) -> Any:  # noqa: ANN401
    """Whether the server has to prove who it is."""
    return setting(
        f"{store}.tls.verify", default=True, doc="Whether the server's certificate is checked."
    )


def ca_file(store: str, *, otherwise: str = "the system's") -> Any:  # noqa: ANN401
    """Whom to trust; *otherwise* says whose certificates are trusted without it."""
    return setting(
        f"{store}.tls.ca.file",
        default=None,
        non_empty=True,
        doc=f"A file with the certificates to trust, in PEM. Default: {otherwise}.",
    )


def connect_timeout_ms(store: str) -> Any:  # noqa: ANN401
    """The patience with a server that does not answer the phone."""
    return setting(
        f"{store}.connect.timeout.ms",
        default=10_000,
        at_least=1,
        doc="How long to wait for a connection.",
    )


def read_timeout_ms(store: str) -> Any:  # noqa: ANN401
    """The patience with a server that has stopped speaking."""
    return setting(
        f"{store}.read.timeout.ms",
        default=60_000,
        at_least=1,
        doc="How long to wait for the next bytes.",
    )


def retries(store: str) -> Any:  # noqa: ANN401
    """How often to try again."""
    return setting(
        f"{store}.retries",
        default=5,
        at_least=0,
        at_most=30,
        doc="How often to try again after a failure that may pass.",
    )


def backoff_ms(store: str) -> Any:  # noqa: ANN401
    """The first wait between attempts."""
    return setting(
        f"{store}.retry.backoff.ms",
        kind=SettingType.LONG,
        default=100,
        at_least=0,
        doc="How long to wait before the first new attempt, at most; doubled for each one behind it.",
    )


def backoff_max_ms(store: str) -> Any:  # noqa: ANN401
    """The longest wait between attempts."""
    return setting(
        f"{store}.retry.backoff.max.ms",
        kind=SettingType.LONG,
        default=20_000,
        at_least=0,
        doc="The longest wait between two attempts.",
    )
