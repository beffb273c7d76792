"""The classes that a configuration of the mirror names: ours, also under Java's names, and users' own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from headrace.class_path import class_at
from headrace.connect.errors import ConfigError, TaskFailedError

JAVA_PACKAGE: Final = "org.apache.kafka.connect.mirror."
_Kind = TypeVar("_Kind")


def known_as(*kinds: type[_Kind]) -> Mapping[str, type[_Kind]]:
    """*kinds* by each name that a configuration may have for them: Java's, with and without its package, and ours."""
    return {
        name: kind
        for kind in kinds
        for name in (
            f"{JAVA_PACKAGE}{kind.__name__}",
            kind.__name__,
            f"{kind.__module__}:{kind.__name__}",
        )
    }


def class_named(
    key: str, path: str, known: Mapping[str, type[_Kind]], kind: type[_Kind]
) -> type[_Kind]:
    """The class that *path*, the value of *key*, stands for: one of *known*, or a user's own, whose module is imported.

    Raises :class:`~headrace.connect.errors.ConfigError` when there is none, or when it does not extend *kind*.
    """
    problem = class_problem(path, known, kind)
    if problem is not None:
        raise ConfigError([(key, problem)])
    return known[path.strip()] if path.strip() in known else _own(path.strip(), kind)


def class_problem(path: str, known: Mapping[str, type[_Kind]], kind: type[_Kind]) -> str | None:
    """Why *path* stands for no class that extends *kind*, or ``None``; imports the module of a user's own."""
    path = path.strip()
    if path in known:
        return None
    if ":" not in path:
        ours = " or ".join(name for name in known if name.startswith(JAVA_PACKAGE))
        return (
            f"Class {path} could not be found. Known are {ours}; a Java class of your own has to be written again in "
            f"Python, extending {kind.__module__}.{kind.__name__}, and given as package.module:Class."
        )
    try:
        _own(path, kind)
    except TaskFailedError as error:
        return str(error)
    return None


def _own(path: str, kind: type[_Kind]) -> type[_Kind]:
    found = class_at(path, kind)
    assert isinstance(found, type)
    assert issubclass(found, kind)
    return found
