"""What is wrong with the listeners of a worker's configuration, and with the files that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.connect.every_problem import every_problem
from headrace.rest.config import RestConfig
from headrace.rest.guards import listener_contexts, login_of

_READERS: Final[tuple[Callable[[RestConfig], object], ...]] = (login_of, listener_contexts)


def rest_problems(props: Mapping[str, str]) -> tuple[Problem, ...]:
    """All that is wrong with the settings of the REST interface; reads the files of users and of keys."""
    return every_problem(RestConfig, props, _unreadable)


def _unreadable(config: RestConfig) -> Iterator[Problem]:
    for read in _READERS:
        try:
            read(config)
        except ConfigError as error:
            yield from error.problems
