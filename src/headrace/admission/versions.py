"""Versions of plugins that are asked for, against the one that there is (KIP-891)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.runtime.herder.errors import BadRequestError
from headrace.runtime.settings.connector_version import connector_version
from headrace.runtime.settings.version_ranges import version_ranges

_OF_CONNECTOR: Final = "connector.plugin.version"


def version_problem(name: str, wanted: str | None, available: str | None) -> str | None:
    """Why the plugin *name* does not do for who wants a version, in Kafka Connect's words.

    *wanted* is a version, or ranges such as ``[1.0,2.0)``; nothing and ``latest`` mean any. *available* is its only
    version, ``None`` when its author does not tell. Pure.
    """
    try:
        ranges = version_ranges(wanted)
    except ValueError as error:
        return str(error)
    if not ranges or (available is not None and any(each.holds(available) for each in ranges)):
        return None
    told = ",".join(map(str, ranges))
    return (
        f"Plugin {name} not found that matches the version range {told}, "
        f"available versions: [{available or 'undefined'}]"
    )


def connector_version_problems(
    connector: SourceConnector, props: Mapping[str, str]
) -> Iterator[Problem]:
    """What is wrong with the version of *connector*, which *props* name, at the key that asks for one. Pure."""
    wanted, available = props.get(_OF_CONNECTOR), connector_version(type(connector))
    problem = version_problem(props.get("connector.class", ""), wanted, available)
    if problem:
        yield _OF_CONNECTOR, problem


def check_version(name: str, wanted: str | None, available: str | None) -> None:
    """Raise :class:`~headrace.runtime.herder.errors.BadRequestError` with what :func:`version_problem` says. Pure."""
    problem = version_problem(name, wanted, available)
    if problem:
        raise BadRequestError(problem)
