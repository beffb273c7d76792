"""Transformations and predicates: those that a worker may use, and the aliases by which a connector's chain names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import headrace
from headrace.config.connector_config import (
    KEYS,
    PREDICATES,
    TRANSFORMS,
    aliases,
    own_settings,
    stage_choices,
)
from headrace.config.providers import Resolution
from headrace.connect.config import Config, Problem
from headrace.connect.setting import Setting, SettingType
from headrace.herder.answers import Plugin, PluginKind
from headrace.plugins.config_def import reading, versioned
from headrace.plugins.discovery import (
    ABSTRACT,
    WRONG_KIND,
    AuthoredPlugins,
    Interface,
    PluginSearch,
    declared_config,
    declared_version,
    has_methods,
    unusable,
    wrong_kind,
)
from headrace.plugins.versions import version_problem
from headrace.task.connector_spec import PluginChoice, StageChoice
from headrace.transforms.catalogue import (
    PREDICATE_CLASSES,
    TRANSFORM_CLASSES,
    predicate_config,
    transform_config,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKind:
    """Transformations or predicates: our own, by Java's names, and where authors' are registered.

    *key* is the setting that lists their aliases.
    """

    key: str
    kind: PluginKind
    group: str
    interface: Interface
    suffixes: tuple[str, ...]
    own: Sequence[str]
    own_config: Callable[[str], type[Config] | None]


_TRANSFORMATIONS: Final = StageKind(
    key=TRANSFORMS,
    kind=PluginKind.TRANSFORMATION,
    group="headrace.transforms",
    interface=Interface("Transformation", lambda found: has_methods(found, "configure", "apply")),
    suffixes=("Transformation", "Transform"),
    own=TRANSFORM_CLASSES,
    own_config=transform_config,
)
_PREDICATES: Final = StageKind(
    key=PREDICATES,
    kind=PluginKind.PREDICATE,
    group="headrace.predicates",
    interface=Interface("Predicate", lambda found: has_methods(found, "configure", "test")),
    suffixes=("Predicate",),
    own=PREDICATE_CLASSES,
    own_config=predicate_config,
)


class NoConfig(Config):
    """The settings of a class that declares none: it alone checks what it is given."""


class StagePlugins:
    """What a configuration may name as one of a *kind*. Any thread may call.

    An author's is a class that is a :class:`~headrace.connect.transforming.Transform` or a
    :class:`~headrace.connect.transforming.Predicate`. Its settings are those of its ``config_class``, if it has one,
    and its version is its ``version``. *any_plugin* returns the full name of a plugin of any kind.
    """

    def __init__(
        self, search: PluginSearch, kind: StageKind, any_plugin: Callable[[str], str | None]
    ) -> None:
        self.interface: Final = kind.interface.name
        """What Kafka Connect calls them."""
        self._kind = kind
        self._any_plugin = any_plugin
        self._authored = AuthoredPlugins(search, kind.group, kind.interface, *kind.suffixes)

    def config(self, name: str) -> type[Config] | None:
        """The settings of the class that *name* stands for; ``None`` when that cannot be used."""
        if self._own(name):
            return self._kind.own_config(name)
        found = self._authored.class_of(name)
        return None if found is None else declared_config(found) or NoConfig

    def version(self, name: str) -> str | None:
        """The version of the class that *name* stands for; ``None`` when its author declares none."""
        if self._own(name):
            return headrace.__version__
        return declared_version(self._authored.class_of(name))

    def full_name(self, name: str) -> str:
        """The name to show for *name*, by which a slot makes it as well: Java's for our own, else an author's path."""
        return self._own(name) or self._authored.path(name) or self._any_plugin(name) or name

    def known(self, name: str) -> str | None:
        """The full name of the class that *name* stands for, if it can be used."""
        return self.full_name(name) if self.config(name) is not None else None

    def problem(self, name: str) -> str | None:
        """Why the class that *name* stands for cannot be used, if it cannot; Kafka Connect's sentence, without the key."""
        if self._own(name):
            return None
        path = self._authored.path(name)
        if path is not None:
            return unusable(path, self._kind.interface)
        # ReplaceField is abstract in Java: only ReplaceField$Key and ReplaceField$Value can be used.
        nested = [each for each in self._kind.own if name in _names(each.partition("$")[0])]
        if nested:
            return f"{ABSTRACT} Did you mean {', '.join(nested)}?"
        other = self._any_plugin(name)
        if other is not None:
            return wrong_kind(other, self._kind.interface)
        return f"Class {name} could not be found."

    def recommended(self) -> tuple[str, ...]:
        """The full names of all that can be used."""
        return tuple(sorted((*self._kind.own, *self._authored.usable())))

    def listed(self) -> tuple[Plugin, ...]:
        """All plugins of this kind, sorted by class."""
        return tuple(sorted(self._all(), key=lambda each: each.class_name))

    def _all(self) -> Iterator[Plugin]:
        kind = self._kind.kind
        for each in self._kind.own:
            yield Plugin(class_name=each, kind=kind, version=headrace.__version__)
        for path, found in self._authored.usable().items():
            yield Plugin(class_name=path, kind=kind, version=declared_version(found))
        for path, message in self._authored.broken():
            yield Plugin(class_name=path, kind=kind, problem=message)

    def _own(self, name: str) -> str | None:
        """Java's name of our own class that *name* stands for, if it is one."""
        return next((each for each in self._kind.own if name in _names(each)), None)


def _names(java_name: str) -> tuple[str, str]:
    """With its package, and without."""
    return java_name, java_name.rpartition(".")[2]


Stages = Mapping[str, StagePlugins]
"""Transformations first, then predicates, each by the setting that lists their aliases."""


def stage_plugins(search: PluginSearch, any_plugin: Callable[[str], str | None]) -> Stages:
    """The transformations and predicates that *search* finds, and our own."""
    return {
        each.key: StagePlugins(search, each, any_plugin) for each in (_TRANSFORMATIONS, _PREDICATES)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasClass:
    """What an *alias* of a configuration stands for: the *name* of its class, among *plugins*.

    *key* is the setting that lists the alias.
    """

    key: str
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
        """The settings of the class, with the alias's prefix and group."""
        config = self.config()
        for each in () if config is None else config.settings():
            yield replace(each, name=f"{self.prefix}{each.name}", group=self.group)

    @property
    def group(self) -> str:
        """What its settings are shown as."""
        return f"{self.key.capitalize()}: {self.alias}"


def alias_classes(props: Mapping[str, str], stages: Stages) -> Iterator[AliasClass]:
    """Every alias of *props* once, transformations first. Pure."""
    for key, plugins in stages.items():
        for alias in dict.fromkeys(aliases(key, props)):
            name = props.get(f"{key}.{alias}.type", "").strip()
            yield AliasClass(key=key, alias=alias, name=name, plugins=plugins)


def chain_props(submitted: Resolution) -> dict[str, str]:
    """The properties for the functions below: resolved, except for the lists of aliases. Pure.

    Keys, groups and sentences contain aliases, and would show what a placeholder stands for.
    """
    props = submitted.props()
    lists = {key: submitted.given.get(key) for key in KEYS}
    return props | {
        key: given for key, given in lists.items() if given is not None and aliases(key, props)
    }


def chain_settings(props: Mapping[str, str], stages: Stages) -> Iterator[Setting]:
    """The settings of every alias in *props*; those of its class only where the class can be used. Pure."""
    for each in alias_classes(props, stages):
        of_class = tuple(_class_settings(each))
        yield from of_class
        others = [*each.own_settings()]
        if each.key == TRANSFORMS and each.config() is not None:
            others += _condition_settings(each)
        for place, one in enumerate(sorted(others, key=_place), start=len(of_class)):
            yield replace(one, order=place)


def chosen_stages(props: Mapping[str, str], stages: Stages) -> tuple[StageChoice, ...]:
    """The transformation chain of *props*, which are valid, with classes as a slot makes them. Pure."""
    return tuple(
        replace(
            each,
            transform=_placed(each.transform, stages[TRANSFORMS]),
            predicate=each.predicate and _placed(each.predicate, stages[PREDICATES]),
        )
        for each in stage_choices(props)
    )


def is_passed_on(key: str, props: Mapping[str, str], stages: Stages) -> bool:
    """Whether *key* is for a class that declares no settings, and so may know any key. Pure."""
    return any(
        key.startswith(each.prefix) and each.config() is NoConfig
        for each in alias_classes(props, stages)
    )


def shown_class(key: str, props: Mapping[str, str], stages: Stages) -> str | None:
    """How the class at *key* of *props* is shown; ``None`` when *key* does not name the class of an alias. Pure."""
    return next(
        (
            each.plugins.full_name(each.name)
            for each in alias_classes(props, stages)
            if key == f"{each.prefix}type"
        ),
        None,
    )


def in_chains(key: str, props: Mapping[str, str]) -> bool:
    """Whether errors of *key* are reported with the aliases that *props* list. Pure."""
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
        doc=f"The class of the {of.plugins.interface.lower()} '{of.alias}'.",
        group=of.group,
        order=0,
        width="LONG",
        display_name=f"{of.plugins.interface} type for {of.alias}",
        recommended=of.plugins.recommended(),
    )
    version = Setting(
        name=f"{of.prefix}plugin.version",
        default=None,
        importance="high",
        doc=f"Which version of the {of.plugins.interface.lower()} '{of.alias}' to use.",
        group=of.group,
        order=1,
        width="LONG",
        display_name=f"{of.plugins.interface} version for {of.alias}",
    )
    yield versioned(version, of.plugins.version(of.name))


def _condition_settings(of: AliasClass) -> Iterator[Setting]:
    yield Setting(
        name=f"{of.prefix}negate",
        type=SettingType.BOOLEAN,
        default=False,
        doc="Whether the transformation applies where its predicate is false.",
        group=of.group,
        display_name="negate",
    )
    yield Setting(
        name=f"{of.prefix}predicate",
        default=None,
        doc="The alias of the predicate that says to which records the transformation applies.",
        group=of.group,
        display_name="predicate",
    )


def _place(setting: Setting) -> tuple[bool, int, str]:
    """Kafka's order of settings that have no order of their own: required ones first, then by importance and name."""
    return not setting.required, ("high", "medium", "low").index(setting.importance), setting.name


def _placed(choice: PluginChoice, plugins: StagePlugins) -> PluginChoice:
    return replace(choice, class_name=plugins.full_name(choice.class_name))


def chain_problems(props: Mapping[str, str], stages: Stages) -> Iterator[Problem]:
    """What is wrong with the aliases in *props*, their classes, and across the settings of these.

    :func:`setting_problems` reports single settings, among them a missing class.
    """
    for key in KEYS:
        listed = aliases(key, props)
        if len(set(listed)) < len(listed):
            message = f"Invalid value [{', '.join(listed)}] for configuration {key}"
            yield key, f"{message}: Duplicate alias provided."
    for each in alias_classes(props, stages):
        if each.name:
            yield from _class_problems(each, props)
    for alias in aliases(TRANSFORMS, props):
        yield from _condition_problems(alias, props)


def setting_problems(props: Mapping[str, str], stages: Stages) -> Iterator[Problem]:
    """What is wrong with each setting of an alias by itself."""
    for setting in chain_settings(props, stages):
        for message in reading(setting, props).errors:
            yield setting.name, message


def _class_problems(of: AliasClass, props: Mapping[str, str]) -> Iterator[Problem]:
    key, config = f"{of.prefix}type", of.config()
    if config is not None:
        yield from _problems_across(of, config, props)
        yield from _version_problems(of, props)
    else:
        message = of.plugins.problem(of.name) or ""
        as_is = message.startswith((ABSTRACT, WRONG_KIND))
        yield (
            key,
            message if as_is else f"Invalid value {of.name} for configuration {key}: {message}",
        )


def _problems_across(
    of: AliasClass, config: type[Config], props: Mapping[str, str]
) -> Iterator[Problem]:
    """What is wrong across settings that are each valid."""
    if any(reading(each, props).errors for each in of.own_settings()):
        return
    for name, sentence in config.problems(own_settings(of.key, of.alias, props)):
        yield f"{of.prefix}{name}", sentence


def _version_problems(of: AliasClass, props: Mapping[str, str]) -> Iterator[Problem]:
    key = f"{of.prefix}plugin.version"
    name = of.plugins.full_name(of.name)
    message = version_problem(name, props.get(key), of.plugins.version(of.name))
    if message is not None:
        yield key, message


def _condition_problems(alias: str, props: Mapping[str, str]) -> Iterator[Problem]:
    negate, predicate = f"{TRANSFORMS}.{alias}.negate", f"{TRANSFORMS}.{alias}.predicate"
    if negate in props and predicate not in props:
        yield (
            # Kafka Connect reports it at the class.
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
