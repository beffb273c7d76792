"""Transformations and predicates out of a connector's configuration: which classes, with which settings of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.connect.config import under
from headrace.connect.setting_type import SettingType, parsed
from headrace.slot.work import PluginChoice, StageChoice

TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
KEYS: Final = (TRANSFORMS, PREDICATES)
"""The settings that list aliases."""
OF_RUNTIME: Final = ("type", "plugin.version", "predicate", "negate")
"""What of an alias's keys is not for its class."""


def aliases(key: str, props: Mapping[str, str]) -> tuple[str, ...]:
    """The aliases that *key* lists in *props*. Pure."""
    listed = parsed(props.get(key, ""), SettingType.LIST)
    assert isinstance(listed, tuple)
    return listed


def own_settings(key: str, alias: str, props: Mapping[str, str]) -> dict[str, str]:
    """What *props* have for the class of *alias*, without its prefix. Pure."""
    mine = under(props, f"{key}.{alias}.")
    return {name: value for name, value in mine.items() if name not in OF_RUNTIME}


def stage_choices(props: Mapping[str, str]) -> tuple[StageChoice, ...]:
    """The transformation chain of *props*, which are valid. Pure."""
    return tuple(_stage(alias, props) for alias in aliases(TRANSFORMS, props))


def _stage(alias: str, props: Mapping[str, str]) -> StageChoice:
    predicate = props.get(f"{TRANSFORMS}.{alias}.predicate", "").strip()
    negate = parsed(props.get(f"{TRANSFORMS}.{alias}.negate", "false"), SettingType.BOOLEAN)
    return StageChoice(
        transform=_choice(TRANSFORMS, alias, props),
        predicate=_choice(PREDICATES, predicate, props) if predicate else None,
        negate=negate is True,
    )


def _choice(key: str, alias: str, props: Mapping[str, str]) -> PluginChoice:
    return PluginChoice(
        class_name=props[f"{key}.{alias}.type"].strip(), config=own_settings(key, alias, props)
    )
