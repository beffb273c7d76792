"""What an object's key tells by a template such as ``{{topic}}/{{partition}}-{{start_offset}}.jsonl``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_CAPTURES: Final[Mapping[str, str]] = {
    "topic": ".+?",
    "partition": "[0-9]+",
    "key": ".+?",
    "start_offset": "[0-9]+",
    "timestamp": ".+?",
}
VARIABLES: Final = tuple(_CAPTURES)
_VARIABLE = re.compile(r"{{ *(?P<name>\w+)(?::\w+=\w+)? *}}", re.ASCII)


class KeyTemplate:
    """A template of the seed's framework (section 5.1 of its reference): literal text and variables.

    A variable may have a parameter (``{{timestamp:unit=yyyy}}``), which does not matter here. One that comes
    twice stands for the same text. Raises ``ValueError``, with a sentence, for anything else in braces.
    """

    def __init__(self, text: str) -> None:
        self._pattern = re.compile(_pattern(text), re.DOTALL)

    @property
    def variables(self) -> frozenset[str]:
        """The names of its variables."""
        return frozenset(self._pattern.groupindex)

    def found(self, key: str) -> Mapping[str, str] | None:
        """The variables' texts in *key*; ``None`` when it is not of this form."""
        found = self._pattern.fullmatch(key)
        return None if found is None else found.groupdict()

    def told(self, key: str) -> Mapping[str, str]:
        """The variables' texts in *key*; none when it is not of this form."""
        return self.found(key) or {}


def template_problem(text: str | None) -> str | None:
    """What is wrong with a template, or ``None``."""
    try:
        _pattern(text or "")
    except ValueError as error:
        return str(error)
    return None


def _pattern(text: str) -> str:
    parts, end, seen = list[str](), 0, set[str]()
    for variable in _VARIABLE.finditer(text):
        name = variable["name"]
        if name not in _CAPTURES:
            raise ValueError(f"{{{{{name}}}}} is none of {', '.join(VARIABLES)}")
        parts.append(_literal(text[end : variable.start()]))
        # A time comes in pieces, each a unit of its own.
        again = name in seen and name != "timestamp"
        parts.append(f"(?P={name})" if again else _capture(name, first=name not in seen))
        seen.add(name)
        end = variable.end()
    return "".join([*parts, _literal(text[end:])])


def _capture(name: str, *, first: bool) -> str:
    return f"(?P<{name}>{_CAPTURES[name]})" if first else f"(?:{_CAPTURES[name]})"


def _literal(text: str) -> str:
    if "{{" in text or "}}" in text:
        raise ValueError(f"{text!r} has braces around what is no variable")
    return re.escape(text)
