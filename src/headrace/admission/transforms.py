"""Transformations and predicates in a connector's configuration: the keys that their aliases bring along.

None of them works yet, so that each alias is told of at its class: ``transforms.<alias>.type``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.admission.framework_settings import PREDICATES, TRANSFORMS
from headrace.connect.config import Problem
from headrace.connect.setting import Setting
from headrace.connect.setting_type import SettingType, parsed
from headrace.runtime.providers.resolution import Resolution

_PACKAGE = "org.apache.kafka.connect.transforms"
_OF_KEYS_AND_VALUES = (
    "Cast",
    "ExtractField",
    "Flatten",
    "HeaderFrom",
    "HoistField",
    "InsertField",
    "MaskField",
    "ReplaceField",
    "SetSchemaMetadata",
    "TimestampConverter",
)
_OF_RECORDS = (
    "DropHeaders",
    "Filter",
    "InsertHeader",
    "RegexRouter",
    "TimestampRouter",
    "ValueToKey",
)


def _names(package: str, simple: str) -> tuple[str, ...]:
    return f"{package}.{simple}", simple


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """One kind of plugins with aliases: its key, what Kafka Connect calls it, and the classes that it has."""

    key: str
    kind: str
    classes: frozenset[str]


_CHAINS: Final = (
    _Chain(
        key=TRANSFORMS,
        kind="Transformation",
        classes=frozenset(
            name
            for simple in (
                *_OF_RECORDS,
                *(f"{each}${end}" for each in _OF_KEYS_AND_VALUES for end in ("Key", "Value")),
            )
            for name in _names(_PACKAGE, simple)
        ),
    ),
    _Chain(
        key=PREDICATES,
        kind="Predicate",
        classes=frozenset(
            name
            for simple in ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")
            for name in _names(f"{_PACKAGE}.predicates", simple)
        ),
    ),
)


def chain_props(submitted: Resolution) -> dict[str, str]:
    """What the functions below are asked about: resolved, but for the lists of aliases. Pure.

    Names of keys, groups and texts are made of aliases, and would show what a placeholder stands for.
    """
    props = submitted.props()
    lists = {each.key: submitted.given.get(each.key) for each in _CHAINS}
    return props | {
        key: given for key, given in lists.items() if given is not None and _aliases(key, props)
    }


def chain_settings(props: Mapping[str, str]) -> Iterator[Setting]:
    """The settings of every alias in *props*; those beside its class only where there is such a class. Pure."""
    for chain in _CHAINS:
        for alias in dict.fromkeys(_aliases(chain.key, props)):
            yield from _class_settings(chain, alias)
            if chain.key == TRANSFORMS and props.get(_type(chain, alias)) in chain.classes:
                yield from _condition_settings(alias)


def chain_problems(props: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the aliases in *props* and with their classes, a missing one apart. Pure."""
    for chain in _CHAINS:
        aliases = _aliases(chain.key, props)
        if len(set(aliases)) < len(aliases):
            told = f"Invalid value [{', '.join(aliases)}] for configuration {chain.key}"
            yield chain.key, f"{told}: Duplicate alias provided."
        for alias in dict.fromkeys(aliases):
            yield from _class_problems(chain, alias, props)
    for alias in _aliases(TRANSFORMS, props):
        yield from _condition_problems(alias, props)


def in_chains(key: str, props: Mapping[str, str]) -> bool:
    """Whether what there is to say about *key* is said at the class of an alias that *props* have. Pure."""
    return any(
        (key == chain.key and bool(_aliases(chain.key, props)))
        or any(key.startswith(f"{chain.key}.{alias}.") for alias in _aliases(chain.key, props))
        for chain in _CHAINS
    )


def _class_settings(chain: _Chain, alias: str) -> Iterator[Setting]:
    group = f"{chain.key.capitalize()}: {alias}"
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


def _class_problems(chain: _Chain, alias: str, props: Mapping[str, str]) -> Iterator[Problem]:
    key = _type(chain, alias)
    named = props.get(key)
    if named is None:
        return
    if named.strip() in chain.classes:
        yield (
            key,
            f"The {chain.kind.lower()} {named.strip()} is not supported yet ({key}); leave it out.",
        )
    else:
        yield (
            key,
            f"Invalid value {named} for configuration {key}: Class {named} could not be found.",
        )


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
    if named and named not in _aliases(PREDICATES, props):
        yield (
            predicate,
            f"Invalid value {named} for configuration {predicate}: It is none of predicates.",
        )


def _type(chain: _Chain, alias: str) -> str:
    return f"{chain.key}.{alias}.type"


def _aliases(key: str, props: Mapping[str, str]) -> tuple[str, ...]:
    aliases = parsed(props.get(key, ""), SettingType.LIST)
    assert isinstance(aliases, tuple)
    return aliases
