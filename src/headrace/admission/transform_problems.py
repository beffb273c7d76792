"""What is wrong with the transformations and predicates of a connector's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.admission.plugins import Plugins
from headrace.admission.reading import reading
from headrace.admission.transforms import AliasClass, alias_classes, chain_settings
from headrace.admission.versions import version_problem
from headrace.connect.config import Config, Problem
from headrace.runtime.settings.stage_settings import (
    KEYS,
    PREDICATES,
    TRANSFORMS,
    aliases,
    own_settings,
)


def chain_problems(props: Mapping[str, str], plugins: Plugins) -> Iterator[Problem]:
    """What is wrong with the aliases in *props*, their classes, and across the settings of these.

    Single settings, a missing class among them, are told by :func:`setting_problems`.
    """
    for key in KEYS:
        listed = aliases(key, props)
        if len(set(listed)) < len(listed):
            told = f"Invalid value [{', '.join(listed)}] for configuration {key}"
            yield key, f"{told}: Duplicate alias provided."
    for each in alias_classes(props, plugins):
        if each.name:
            yield from _class_problems(each, props)
    for alias in aliases(TRANSFORMS, props):
        yield from _condition_problems(alias, props)


def setting_problems(props: Mapping[str, str], plugins: Plugins) -> Iterator[Problem]:
    """What is wrong with each setting of an alias by itself."""
    for setting in chain_settings(props, plugins):
        for told in reading(setting, props).errors:
            yield setting.name, told


def _class_problems(of: AliasClass, props: Mapping[str, str]) -> Iterator[Problem]:
    key, config = f"{of.prefix}type", of.config()
    if config is not None:
        yield from _problems_across(of, config, props)
        yield from _version_problems(of, props)
    else:
        told = of.plugins.problem(of.name)
        yield key, f"Invalid value {of.name} for configuration {key}: {told}"


def _problems_across(
    of: AliasClass, config: type[Config], props: Mapping[str, str]
) -> Iterator[Problem]:
    """What is wrong between settings that are right for themselves."""
    if any(reading(each, props).errors for each in of.own_settings()):
        return
    for name, sentence in config.problems(own_settings(of.key, of.alias, props)):
        yield f"{of.prefix}{name}", sentence


def _version_problems(of: AliasClass, props: Mapping[str, str]) -> Iterator[Problem]:
    key = f"{of.prefix}plugin.version"
    told = version_problem(of.name, props.get(key), of.plugins.version(of.name))
    if told is not None:
        yield key, f"Invalid value {props[key]} for configuration {key}: {told}"


def _condition_problems(alias: str, props: Mapping[str, str]) -> Iterator[Problem]:
    negate, predicate = f"{TRANSFORMS}.{alias}.negate", f"{TRANSFORMS}.{alias}.predicate"
    if negate in props and predicate not in props:
        yield (
            # Kafka Connect says it where it checks the class.
            f"{TRANSFORMS}.{alias}.type",
            (
                f"Config '{negate}' was provided but there is no config '{predicate}' defining a "
                "predicate to be negated."
            ),
        )
    named = props.get(predicate, "").strip()
    if named and named not in aliases(PREDICATES, props):
        yield (
            predicate,
            f"Invalid value {named} for configuration {predicate}: It is none of predicates.",
        )
