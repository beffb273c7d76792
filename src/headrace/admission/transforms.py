"""Transformations and predicates in a connector's configuration: the keys that their aliases bring along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from headrace.admission.reading import reading
from headrace.connect.config import Config, Problem
from headrace.connect.setting import Setting
from headrace.connect.setting_type import SettingType
from headrace.runtime.providers.resolution import Resolution
from headrace.runtime.settings.stage_settings import (
    OF_RUNTIME,
    PREDICATES,
    TRANSFORMS,
    aliases,
    own_settings,
)
from headrace.transforms.catalogue import is_planned, predicate_config, transform_config


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """One kind of plugins with aliases: its key, what Kafka Connect calls it, and the settings of its classes."""

    key: str
    kind: str
    config: Callable[[str], type[Config] | None]


_CHAINS: Final = (
    _Chain(key=TRANSFORMS, kind="Transformation", config=transform_config),
    _Chain(key=PREDICATES, kind="Predicate", config=predicate_config),
)


def chain_props(submitted: Resolution) -> dict[str, str]:
    """What the functions below are asked about: resolved, but for the lists of aliases. Pure.

    Names of keys, groups and texts are made of aliases, and would show what a placeholder stands for.
    """
    props = submitted.props()
    lists = {each.key: submitted.given.get(each.key) for each in _CHAINS}
    return props | {
        key: given for key, given in lists.items() if given is not None and aliases(key, props)
    }


def chain_settings(props: Mapping[str, str]) -> Iterator[Setting]:
    """The settings of every alias in *props*; those beside its class only where there is such a class. Pure."""
    for chain in _CHAINS:
        for alias in dict.fromkeys(aliases(chain.key, props)):
            yield from _class_settings(chain, alias)
            config = _config(chain, alias, props)
            if config is None:
                continue
            yield from _own_settings(chain, alias, config)
            if chain.key == TRANSFORMS:
                yield from _condition_settings(alias)


def chain_problems(props: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the aliases in *props*, their classes, and across the settings of these.

    Pure. Single settings, a missing class among them, are told by :func:`setting_problems`.
    """
    for chain in _CHAINS:
        listed = aliases(chain.key, props)
        if len(set(listed)) < len(listed):
            told = f"Invalid value [{', '.join(listed)}] for configuration {chain.key}"
            yield chain.key, f"{told}: Duplicate alias provided."
        for alias in dict.fromkeys(listed):
            yield from _class_problems(chain, alias, props)
    for alias in aliases(TRANSFORMS, props):
        yield from _condition_problems(alias, props)


def setting_problems(props: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with each setting of an alias by itself. Pure."""
    for setting in chain_settings(props):
        for told in reading(setting, props).errors:
            yield setting.name, told


def in_chains(key: str, props: Mapping[str, str]) -> bool:
    """Whether what there is to say about *key* is said at the class of an alias that *props* have. Pure."""
    return any(
        (key == chain.key and bool(aliases(chain.key, props)))
        or any(key.startswith(f"{chain.key}.{alias}.") for alias in aliases(chain.key, props))
        for chain in _CHAINS
    )


def _class_settings(chain: _Chain, alias: str) -> Iterator[Setting]:
    group = _group(chain, alias)
    yield Setting(
        name=_type(chain, alias),
        type=SettingType.CLASS,
        importance="high",
        doc=f"The class of the {chain.kind.lower()} '{alias}'.",
        group=group,
        order=0,
        width="LONG",
        display_name=f"{chain.kind} type for {alias}",
    )
    yield Setting(
        name=f"{chain.key}.{alias}.plugin.version",
        default=None,
        importance="high",
        doc=f"Which version of the {chain.kind.lower()} '{alias}' to use.",
        group=group,
        order=1,
        width="LONG",
        display_name=f"{chain.kind} version for {alias}",
    )


def _condition_settings(alias: str) -> Iterator[Setting]:
    yield Setting(
        name=f"{TRANSFORMS}.{alias}.negate",
        type=SettingType.BOOLEAN,
        default=False,
        doc="Whether the transformation applies where its predicate is false.",
        group=f"Transforms: {alias}",
        order=2,
        display_name="negate",
    )
    yield Setting(
        name=f"{TRANSFORMS}.{alias}.predicate",
        default=None,
        doc="The alias of the predicate that says to which records the transformation applies.",
        group=f"Transforms: {alias}",
        order=3,
        display_name="predicate",
    )


def _own_settings(chain: _Chain, alias: str, config: type[Config]) -> Iterator[Setting]:
    for place, each in enumerate(config.settings()):
        yield replace(
            each,
            name=f"{chain.key}.{alias}.{each.name}",
            group=_group(chain, alias),
            order=len(OF_RUNTIME) + place,
        )


def _class_problems(chain: _Chain, alias: str, props: Mapping[str, str]) -> Iterator[Problem]:
    key = _type(chain, alias)
    named = props.get(key, "").strip()
    if not named:
        return
    config = chain.config(named)
    if config is not None:
        yield from _problems_across(chain, alias, config, props)
    elif chain.key == TRANSFORMS and is_planned(named):
        yield key, f"The transformation {named} is not supported yet ({key}); leave it out."
    else:
        told = f"Class {named} could not be found."
        yield key, f"Invalid value {named} for configuration {key}: {told}"


def _problems_across(
    chain: _Chain, alias: str, config: type[Config], props: Mapping[str, str]
) -> Iterator[Problem]:
    """What is wrong between settings that are right for themselves."""
    if any(reading(each, props).errors for each in _own_settings(chain, alias, config)):
        return
    for name, sentence in config.problems(own_settings(chain.key, alias, props)):
        yield f"{chain.key}.{alias}.{name}", sentence


def _config(chain: _Chain, alias: str, props: Mapping[str, str]) -> type[Config] | None:
    return chain.config(props.get(_type(chain, alias), "").strip())


def _group(chain: _Chain, alias: str) -> str:
    return f"{chain.key.capitalize()}: {alias}"


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


def _type(chain: _Chain, alias: str) -> str:
    return f"{chain.key}.{alias}.type"
