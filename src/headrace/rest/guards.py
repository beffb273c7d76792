"""TLS and login of a worker's listeners, and the validation of their settings."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from headrace.connect.config import Problem, every_problem
from headrace.connect.errors import ConfigError
from headrace.rest.config import ADMIN_TLS, TLS, RestConfig
from headrace.rest.login import BasicLogin, passwords_in


def listener_contexts(config: RestConfig) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """The TLS contexts of the listeners and of the admin listeners; ``None`` if none of them has https.

    Raises :class:`~headrace.connect.errors.ConfigError` for stores that cannot be read.
    """
    return (
        _context(config, TLS, config.listeners),
        _context(config, ADMIN_TLS, config.admin_listeners or ()),
    )


def login_of(config: RestConfig) -> BasicLogin | None:
    """The users who may log in; ``None`` if no login is required. Raises as ``passwords_in``."""
    file = config.rest_basic_auth_credentials_file
    if not config.has_basic_auth or file is None:
        return None
    return BasicLogin(passwords_in(Path(file)))


def _context(config: RestConfig, prefix: str, listeners: Sequence[str]) -> ssl.SSLContext | None:
    if not any(each.lower().startswith("https:") for each in listeners):
        return None
    return config.tls(prefix).context()


_READERS: Final[tuple[Callable[[RestConfig], object], ...]] = (login_of, listener_contexts)


def rest_problems(props: Mapping[str, str]) -> tuple[Problem, ...]:
    """All problems of the settings of the REST interface; reads the files of users and of keys."""
    return every_problem(RestConfig, props, _unreadable)


def _unreadable(config: RestConfig) -> Iterator[Problem]:
    for read in _READERS:
        try:
            read(config)
        except ConfigError as error:
            yield from error.problems
