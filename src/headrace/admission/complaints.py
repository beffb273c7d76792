"""Problems of a configuration, gathered by their keys: each sentence once, and with its key in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.admission.reading import NULL
from headrace.connect.config import Problem
from headrace.connect.setting import Setting
from headrace.connect.setting_type import HIDDEN, SettingType
from headrace.runtime.providers.resolution import Resolution
from headrace.runtime.settings.secret_keys import is_secret_key

# Their sentences are Kafka Connect's, which has no key in them.
_AS_THEY_ARE = frozenset({"exactly.once.support", "transaction.boundary"})


class Complaints:
    """What is wrong with each key, in the order in which it was found. Belongs to the thread that made it.

    Values are shown as they were *submitted*, with their placeholders; those of passwords and of keys that
    look like secrets are never told.
    """

    def __init__(self, definitions: Mapping[str, Setting], submitted: Resolution) -> None:
        self._definitions = definitions
        self._submitted = submitted
        self._shown = submitted.given
        self._found = dict[str, list[str]]()

    def of(self, key: str) -> tuple[str, ...]:
        """What is wrong with *key*."""
        return tuple(self._found.get(key, ()))

    def all_keys(self) -> tuple[str, ...]:
        """The keys with which something is wrong."""
        return tuple(self._found)

    def add(self, problems: Iterable[Problem], *, as_they_are: bool = False) -> None:
        """Take *problems* in; *as_they_are* where the sentences tell their place, or are Kafka Connect's."""
        for key, sentence in problems:
            whole = sentence if as_they_are else self._located(key, sentence)
            told = self._submitted.masked(whole)
            known = self._found.setdefault(self._shown_key(key), [])
            if told not in known:
                known.append(told)

    def add_new(self, problems: Iterable[Problem]) -> None:
        """Take those of *problems* in whose keys nothing was said of before this call."""
        before = frozenset(self._found)
        self.add((key, sentence) for key, sentence in problems if key not in before)

    def value_of(self, key: str) -> str:
        """The submitted value as it may be shown."""
        defined = self._definitions.get(key)
        hidden = is_secret_key(key) if defined is None else defined.type is SettingType.PASSWORD
        return HIDDEN if hidden else str(self._shown.get(key) or "").strip()

    def _shown_key(self, key: str) -> str:
        """One that neither the request nor a setting has may be made of a secret, by an author's class."""
        known = key in self._shown or key in self._definitions
        return key if known else self._submitted.masked(key)

    def _located(self, key: str, sentence: str) -> str:
        # A sentence stands alone in the answer to a creation, where nobody sees its key.
        # Converters know their keys without the prefix.
        named = key.partition(".converter.")[2] or key
        if named in sentence or key in _AS_THEY_ARE or sentence == NULL:
            return sentence
        shown = "null" if self._shown.get(key) is None else self.value_of(key)
        return f"Invalid value {shown} for configuration {key}: {sentence}"
