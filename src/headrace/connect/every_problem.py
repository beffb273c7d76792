"""All that is wrong with a configuration, also across its settings, told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from headrace.connect.config import Config, Problem

_C = TypeVar("_C", bound=Config)


def every_problem(
    kind: type[_C],
    props: Mapping[str, str],
    further: Callable[[_C], Iterable[Problem]] = lambda _: (),
    *,
    instead: Mapping[str, object] | None = None,
) -> tuple[Problem, ...]:
    """What is wrong with *props* as a *kind*; no key is told twice for a value that cannot be read.

    ``kind.check`` and *further* are asked even when single settings are wrong. These have their defaults
    then, or what *instead* holds for their keys: a value that no rule complains about, where a rule would
    otherwise complain of one that nobody gave.
    """
    values, problems = _read(kind, props, instead or {})
    wrong = dict(problems)
    config = kind(originals={key: props[key] for key in props if key not in wrong}, **values)
    across = (*kind.check(config), *further(config))
    return (*problems, *(each for each in across if each[0] not in wrong))


def _read(
    kind: type[Config], props: Mapping[str, str], instead: Mapping[str, object]
) -> tuple[dict[str, Any], list[Problem]]:
    values = dict[str, Any]()
    problems = list[Problem]()
    for each in kind.settings():
        try:
            values[each.attribute] = each.read(props)
        except ValueError as error:
            problems.append((each.name, str(error)))
            default = None if each.required else each.default
            values[each.attribute] = instead.get(each.name, default)
    return values, problems
