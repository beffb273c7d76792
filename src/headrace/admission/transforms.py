"""Transformations and predicates in a connector's configuration: the keys that their aliases bring along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.admission.plugins import Plugins
from headrace.admission.stage_plugins import NoConfig, StagePlugins
from headrace.connect.config import Config
from headrace.connect.setting import Setting
from headrace.connect.setting_type import SettingType
from headrace.runtime.providers.resolution import Resolution
from headrace.runtime.settings.stage_settings import (
    KEYS,
    OF_RUNTIME,
    PREDICATES,
    TRANSFORMS,
    aliases,
    stage_choices,
)
from headrace.slot.work import PluginChoice, StageChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasClass:
    """What an *alias* of a configuration stands for: the *name* of its class, among *plugins*.

    *key* is the setting that lists the alias, *kind* what Kafka Connect calls its class.
    """

    key: str
    kind: str
    alias: str
    name: str
    plugins: StagePlugins

    @property
    def prefix(self) -> str:
        """What the keys of the alias begin with."""
        return f"{self.key}.{self.alias}."

    def config(self) -> type[Config] | None:
        """The settings of the class; ``None`` when it cannot be used."""
        return self.plugins.config(self.name)

    def own_settings(self) -> Iterator[Setting]:
        """The settings of the class, as the configuration has them."""
        config = self.config()
        for place, each in enumerate(() if config is None else config.settings()):
            yield replace(
                each,
                name=f"{self.prefix}{each.name}",
                group=self.group,
                order=len(OF_RUNTIME) + place,
            )

    @property
    def group(self) -> str:
        """What its settings are shown as."""
        return f"{self.key.capitalize()}: {self.alias}"


def alias_classes(props: Mapping[str, str], plugins: Plugins) -> Iterator[AliasClass]:
    """Every alias of *props* once, transformations first. Pure."""
    for key, kind, found in (
        (TRANSFORMS, "Transformation", plugins.transforms),
        (PREDICATES, "Predicate", plugins.predicates),
    ):
        for alias in dict.fromkeys(aliases(key, props)):
            name = props.get(f"{key}.{alias}.type", "").strip()
            yield AliasClass(key=key, kind=kind, alias=alias, name=name, plugins=found)


def chain_props(submitted: Resolution) -> dict[str, str]:
    """What the functions below are asked about: resolved, but for the lists of aliases. Pure.

    Names of keys, groups and texts are made of aliases, and would show what a placeholder stands for.
    """
    props = submitted.props()
    lists = {key: submitted.given.get(key) for key in KEYS}
    return props | {
        key: given for key, given in lists.items() if given is not None and aliases(key, props)
    }


def chain_settings(props: Mapping[str, str], plugins: Plugins) -> Iterator[Setting]:
    """The settings of every alias in *props*; those beside its class only where there is such a class. Pure."""
    for each in alias_classes(props, plugins):
        yield from _class_settings(each)
        yield from each.own_settings()
        if each.key == TRANSFORMS and each.config() is not None:
            yield from _condition_settings(each)


def chosen_stages(props: Mapping[str, str], plugins: Plugins) -> tuple[StageChoice, ...]:
    """The transformation chain of *props*, which are valid, with classes as a slot makes them. Pure."""
    return tuple(
        replace(
            each,
            transform=_placed(each.transform, plugins.transforms),
            predicate=each.predicate and _placed(each.predicate, plugins.predicates),
        )
        for each in stage_choices(props)
    )


def is_passed_on(key: str, props: Mapping[str, str], plugins: Plugins) -> bool:
    """Whether *key* is for a class that tells of no settings, and may know it all the same. Pure."""
    return any(
        key.startswith(each.prefix) and each.config() is NoConfig
        for each in alias_classes(props, plugins)
    )


def shown_class(key: str, props: Mapping[str, str], plugins: Plugins) -> str | None:
    """How the class at *key* of *props* is shown; ``None`` when *key* is for no class of an alias. Pure."""
    return next(
        (
            each.plugins.full_name(each.name)
            for each in alias_classes(props, plugins)
            if key == f"{each.prefix}type"
        ),
        None,
    )


def in_chains(key: str, props: Mapping[str, str]) -> bool:
    """Whether what there is to say about *key* is said at the class of an alias that *props* have. Pure."""
    return any(
        (key == list_key and bool(aliases(list_key, props)))
        or any(key.startswith(f"{list_key}.{alias}.") for alias in aliases(list_key, props))
        for list_key in KEYS
    )


def _class_settings(of: AliasClass) -> Iterator[Setting]:
    yield Setting(
        name=f"{of.prefix}type",
        type=SettingType.CLASS,
        importance="high",
        doc=f"The class of the {of.kind.lower()} '{of.alias}'.",
        group=of.group,
        order=0,
        width="LONG",
        display_name=f"{of.kind} type for {of.alias}",
        recommended=of.plugins.recommended(),
    )
    yield Setting(
        name=f"{of.prefix}plugin.version",
        default=None,
        importance="high",
        doc=f"Which version of the {of.kind.lower()} '{of.alias}' to use.",
        group=of.group,
        order=1,
        width="LONG",
        display_name=f"{of.kind} version for {of.alias}",
    )


def _condition_settings(of: AliasClass) -> Iterator[Setting]:
    yield Setting(
        name=f"{of.prefix}negate",
        type=SettingType.BOOLEAN,
        default=False,
        doc="Whether the transformation applies where its predicate is false.",
        group=of.group,
        order=2,
        display_name="negate",
    )
    yield Setting(
        name=f"{of.prefix}predicate",
        default=None,
        doc="The alias of the predicate that says to which records the transformation applies.",
        group=of.group,
        order=3,
        display_name="predicate",
    )


def _placed(choice: PluginChoice, plugins: StagePlugins) -> PluginChoice:
    return replace(choice, class_name=plugins.full_name(choice.class_name))
