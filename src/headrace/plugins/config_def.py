"""The keys that a validation lists besides a connector's own, and the value and the errors of each, as Kafka's ConfigDef has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from headrace.config.connector_config import (
    CONNECTOR_CLASS,
    PREDICATES,
    TRANSFORMS,
    ConnectorConfig,
)
from headrace.config.providers import Resolution
from headrace.config.secret_values import is_secret_key
from headrace.config.worker_config import OVERRIDES, ROLES, Role, WorkerConfig
from headrace.connect.config import Problem, under
from headrace.connect.setting import HIDDEN, Setting, SettingType, parsed
from headrace.herder.answers import CheckedKey, ConfigValue, value_text
from headrace.plugins.converter_plugins import Converters
from headrace.plugins.discovery import ABSTRACT, WRONG_KIND
from headrace.task.connector_spec import PluginChoice

# Kafka Connect's own numbers in the group, which it shifted when it added the versions of plugins (KIP-891).
_PLACES: Mapping[str, int] = {
    "tasks.max": 4,
    "key.converter": 6,
    "value.converter": 8,
    "header.converter": 10,
}
_ORDER = (
    "name",
    CONNECTOR_CLASS,
    "connector.plugin.version",
    "tasks.max",
    "tasks.max.enforce",
    *(each for role in ROLES for each in (f"{role}.converter", f"{role}.converter.plugin.version")),
    TRANSFORMS,
    PREDICATES,
    "config.action.reload",
    "errors.retry.timeout",
    "errors.retry.delay.max.ms",
    "errors.tolerance",
    "errors.log.enable",
    "errors.log.include.messages",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.replication.factor",
    "errors.deadletterqueue.context.headers.enable",
    "topic.creation.groups",
    "exactly.once.support",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "offsets.storage.topic",
)
_TYPE = "converter.type"
_CONVERTERS = ("header.converter", "key.converter", "value.converter")
# Kafka Connect's sentences for these do not name the key.
_AS_IS = frozenset({"exactly.once.support", "transaction.boundary"})
_VERSION = "plugin.version"
_OF_CLASSES = (ABSTRACT, WRONG_KIND)
_NULL = "Null value can not be supplied as the configuration value."
# Kafka Connect also validates null for these when the number does not parse.
_ALSO_VALIDATED_AS_NULL = frozenset({"tasks.max"})


def framework_settings(connector_version: str | None = None) -> tuple[Setting, ...]:
    """Every setting that connectors of any class have, in Kafka Connect's order; then our own.

    *connector_version* is the default of ``connector.plugin.version``.
    """
    known = {each.name: each for each in ConnectorConfig.settings()}
    ordered = (known.pop(name) for name in _ORDER)
    placed = (
        replace(each, order=_PLACES.get(each.name, each.order))
        for each in (*ordered, *known.values())
    )
    return tuple(
        versioned(each, connector_version) if each.name == "connector.plugin.version" else each
        for each in placed
    )


def in_worker(
    setting: Setting,
    props: Mapping[str, str],
    worker: WorkerConfig,
    converters: Converters,
    *,
    default: PluginChoice | None = None,
) -> Setting:
    """*setting* as it is for a connector with *props* in *worker*.

    A connector's converter defaults to *default* or the worker's, *converters* are the recommended values, and the version
    of a converter defaults to that of the chosen one.
    """
    role = _role(setting.name)
    if role is None:
        return setting
    own = (default or worker.converter(role)).class_name
    if setting.name.endswith(".plugin.version"):
        return versioned(setting, converters.version(props.get(f"{role}.converter", own)))
    return replace(
        setting, default=converters.full_name(own), recommended=converters.recommended(role)
    )


def versioned(setting: Setting, version: str | None) -> Setting:
    """*setting*, which asks for a version, for a plugin whose only version is *version*; ``None`` if there is none."""
    return replace(setting, default=version, recommended=() if version is None else (version,))


def _role(name: str) -> Role | None:
    keys = ("{}.converter", "{}.converter.plugin.version")
    return next((role for role in ROLES if name in [each.format(role) for each in keys]), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The value of a key, ``None`` when there is none, and what is wrong with it."""

    value: object = field(default=None, repr=False)
    errors: tuple[str, ...] = ()


def reading(setting: Setting, given: Mapping[str, str | None]) -> Reading:
    """What *given* holds for *setting*. Pure.

    A value that is refused but of the right type is still shown. A null has two errors where the setting has limits,
    because Kafka Connect runs its validators on null, too.
    """
    text = given.get(setting.name, "")
    if text is None:
        return Reading(errors=(*_about_null(setting), refused_null(setting.name)))
    try:
        return Reading(value=setting.read({setting.name: text} if setting.name in given else {}))
    except ValueError as error:
        message = str(error)
    try:
        value = parsed(text, setting.type) if setting.name in given else None
    except ValueError:
        value = None
    asks_again = value is None and setting.name in _ALSO_VALIDATED_AS_NULL
    return Reading(value=value, errors=(message, *(_about_null(setting) if asks_again else ())))


def refused_null(key: str) -> str:
    """Kafka Connect's sentence that *key* may not be null, with the key. Pure."""
    return f"Invalid value null for configuration {key}: {_NULL}"


def _about_null(setting: Setting) -> tuple[str, ...]:
    limits = setting.limits
    if limits.at_least is not None or limits.at_most is not None:
        message = "Value must be non-null"
    elif limits.one_of:
        how = " (case insensitive)" if limits.ignore_case else ""
        message = f"String must be one of{how}: {', '.join(limits.one_of)}"
    else:
        return ()
    return (f"Invalid value null for configuration {setting.name}: {message}",)


class ValidationErrors:
    """What is wrong with each key, in the order in which it was found. Belongs to the thread that made it.

    Values are shown as they were *submitted*, with their placeholders; those of passwords and of keys that
    look like secrets are never shown.
    """

    def __init__(self, definitions: Mapping[str, Setting], submitted: Resolution) -> None:
        self._definitions = definitions
        self._submitted = submitted
        self._shown = submitted.given
        self._found = dict[str, list[str]]()

    def of(self, key: str) -> tuple[str, ...]:
        """The errors of *key*."""
        return tuple(self._found.get(key, ()))

    def all_keys(self) -> tuple[str, ...]:
        """The keys that have errors."""
        return tuple(self._found)

    def add(self, problems: Iterable[Problem], *, as_is: bool = False) -> None:
        """Add *problems*; *as_is* where the sentences name their keys, or are Kafka Connect's."""
        for key, sentence in problems:
            whole = sentence if as_is else self._located(key, sentence)
            masked = self._submitted.masked(whole)
            known = self._found.setdefault(self._shown_key(key), [])
            if masked not in known:
                known.append(masked)

    def add_new(self, problems: Iterable[Problem]) -> None:
        """Add those of *problems* whose keys had no errors before this call."""
        before = frozenset(self._found)
        self.add((key, sentence) for key, sentence in problems if key not in before)

    def value_of(self, key: str) -> str:
        """The submitted value as it may be shown."""
        defined = self._definitions.get(key)
        hidden = is_secret_key(key) if defined is None else defined.type is SettingType.PASSWORD
        return HIDDEN if hidden else str(self._shown.get(key) or "").strip()

    def _shown_key(self, key: str) -> str:
        """*key*, masked when it is neither the request's nor a setting's: an author's class may put a secret into it."""
        known = key in self._shown or key in self._definitions
        return key if known else self._submitted.masked(key)

    def _located(self, key: str, sentence: str) -> str:
        # The answer to a creation shows sentences without their keys, so each has to name its key.
        # Converters name their keys without the prefix.
        named = key.partition(".converter.")[2] or key
        as_is = key in _AS_IS or key.endswith(_VERSION) or sentence.startswith(_OF_CLASSES)
        if named in sentence or as_is:
            return sentence
        shown = "null" if self._shown.get(key) is None else self.value_of(key)
        return f"Invalid value {shown} for configuration {key}: {sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Keys with one *prefix*, and the *settings* that define some of them, whose names include the prefix."""

    prefix: str
    settings: tuple[Setting, ...] = ()

    def completed(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        """*given*, with the role of a converter, which the worker sets itself."""
        if self.prefix in OVERRIDES:
            return given
        return {**given, f"{self.prefix}{_TYPE}": self.prefix.partition(".")[0]}


def sections(props: Mapping[str, str], converters: Converters) -> tuple[Section, ...]:
    """What is appended for *props*, in Kafka Connect's order.

    Settings of a converter are part of it only if *props* name the converter.
    """
    return (
        *(Section(prefix=prefix) for prefix in OVERRIDES),
        *(
            Section(prefix=f"{key}.", settings=_listed(f"{key}.", converters.settings(props[key])))
            for key in _CONVERTERS
            if key in props
        ),
    )


def section_problems(section: Section, given: Mapping[str, str | None]) -> Iterator[Problem]:
    """What is wrong with each defined key of *section* by itself; sentences name it without the prefix. Pure."""
    prefix = section.prefix
    mine = {
        key.removeprefix(prefix): value
        for key, value in section.completed(given).items()
        if key.startswith(prefix)
    }
    for each in section.settings:
        bare = replace(each, name=each.name.removeprefix(prefix))
        for message in reading(bare, mine).errors:
            yield each.name, message


def section_keys(
    section: Section, given: Mapping[str, str | None], errors: ValidationErrors
) -> Iterator[CheckedKey]:
    """The keys of *section*: those that are defined, and others that were given or have errors. Pure."""
    defined = {each.name: each for each in section.settings}
    others = dict.fromkeys((*_with(section.prefix, given), *errors.all_keys()))
    for name, setting in defined.items():
        value = value_text(reading(setting, section.completed(given)).value, setting.type)
        yield CheckedKey(
            definition=setting,
            value=ConfigValue(
                name=name,
                value=value,
                errors=errors.of(name),
                recommended=setting.recommended,
            ),
        )
    for name in others:
        is_other = name.startswith(section.prefix) and name not in defined
        # Undefined keys of a converter are passed on without being listed; overrides are all listed.
        if is_other and (section.prefix in OVERRIDES or errors.of(name)):
            value = errors.value_of(name) if given.get(name) is not None else None
            yield CheckedKey(
                definition=None,
                value=ConfigValue(name=name, value=value, errors=errors.of(name)),
            )


def _with(prefix: str, given: Mapping[str, str | None]) -> Iterator[str]:
    texts = {key: value or "" for key, value in given.items()}
    yield from (f"{prefix}{key}" for key in under(texts, prefix))


def _listed(prefix: str, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """*settings* with their *prefix*, in the order of the hash table by which Kafka Connect lists them."""
    ordered = sorted(settings, key=lambda each: _bucket(each.name, _buckets(len(settings))))
    return tuple(replace(each, name=f"{prefix}{each.name}") for each in ordered)


def _buckets(entries: int) -> int:
    """How many buckets Java's hash table has for so many *entries*: at least 16, filled by three quarters."""
    return max(16, 1 << math.ceil(entries * 4 / 3 - 1).bit_length())


def _bucket(text: str, buckets: int) -> int:
    """The bucket of *text*, which has no characters beyond 16 bits."""
    found = 0
    for each in text:
        found = (found * 31 + ord(each)) & 0xFFFFFFFF
    return (found ^ found >> 16) & (buckets - 1)
