"""The errors of a validation by key, each sentence once; and reading one key as Kafka Connect's validation does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.config.providers import Resolution
from headrace.config.secret_values import is_secret_key
from headrace.connect.config import Problem
from headrace.connect.setting import HIDDEN, Setting, SettingType, parsed
from headrace.plugins.discovery import ABSTRACT, WRONG_KIND

# Kafka Connect's sentences for these do not name the key.
_AS_IS = frozenset({"exactly.once.support", "transaction.boundary"})
_VERSION = "plugin.version"
_OF_CLASSES = (ABSTRACT, WRONG_KIND)
NULL = "Null value can not be supplied as the configuration value."
# Kafka Connect also validates null for these when the number does not parse.
_ALSO_VALIDATED_AS_NULL = frozenset({"tasks.max"})


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
    return f"Invalid value null for configuration {key}: {NULL}"


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
