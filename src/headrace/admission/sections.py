"""What a validation appends to a connector's own keys: overrides of clients, and settings of converters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.admission.complaints import Complaints
from headrace.admission.converter_plugins import Converters
from headrace.admission.reading import reading
from headrace.connect.config import Problem, under
from headrace.connect.setting import Setting
from headrace.runtime.herder.answers import CheckedKey, ConfigValue
from headrace.runtime.herder.value_text import value_text
from headrace.runtime.settings.client_overrides import OVERRIDES

_CONVERTERS = ("header.converter", "key.converter", "value.converter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Keys with one *prefix*, and the settings that define some of them; those have the prefix already."""

    prefix: str
    settings: tuple[Setting, ...] = ()


def sections(props: Mapping[str, str], converters: Converters) -> tuple[Section, ...]:
    """What is appended for *props*, in Kafka Connect's order.

    Settings of a converter are part of it only if *props* name the converter.
    """
    return (
        *(Section(prefix=prefix) for prefix in OVERRIDES),
        *(
            Section(
                prefix=f"{key}.", settings=_prefixed(f"{key}.", converters.settings(props[key]))
            )
            for key in _CONVERTERS
            if key in props
        ),
    )


def section_problems(section: Section, given: Mapping[str, str | None]) -> Iterator[Problem]:
    """What is wrong with each defined key of *section* by itself; sentences have it without the prefix. Pure."""
    prefix = section.prefix
    mine = {
        key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)
    }
    for each in section.settings:
        bare = replace(each, name=each.name.removeprefix(prefix))
        for told in reading(bare, mine).errors:
            yield each.name, told


def section_keys(
    section: Section, given: Mapping[str, str | None], complaints: Complaints
) -> Iterator[CheckedKey]:
    """The keys of *section*: those that are defined, and others that were given or complained of. Pure."""
    defined = {each.name: each for each in section.settings}
    others = dict.fromkeys((*_with(section.prefix, given), *complaints.all_keys()))
    for name, setting in defined.items():
        value = value_text(reading(setting, given).value, setting.type)
        yield CheckedKey(
            definition=setting,
            value=ConfigValue(
                name=name,
                value=value,
                errors=complaints.of(name),
                recommended=setting.recommended,
            ),
        )
    for name in others:
        is_other = name.startswith(section.prefix) and name not in defined
        # Of converters, what nothing defines is passed on unseen; overrides are all shown.
        if is_other and (section.prefix in OVERRIDES or complaints.of(name)):
            value = complaints.value_of(name) if given.get(name) is not None else None
            yield CheckedKey(
                definition=None,
                value=ConfigValue(name=name, value=value, errors=complaints.of(name)),
            )


def _with(prefix: str, given: Mapping[str, str | None]) -> Iterator[str]:
    texts = {key: value or "" for key, value in given.items()}
    yield from (f"{prefix}{key}" for key in under(texts, prefix))


def _prefixed(prefix: str, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    return tuple(replace(each, name=f"{prefix}{each.name}") for each in settings)
