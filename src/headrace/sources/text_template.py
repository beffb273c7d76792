"""Texts that are made of what an object's name tells, such as the topic ``orders-{{region}}``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_VARIABLE: Final = re.compile(r"{{ *(\w+) *}}", re.ASCII)


class TextTemplate:
    """Literal text and variables, the other way round than :class:`~headrace.sources.key_template.KeyTemplate`.

    Raises ``ValueError``, with a sentence, for anything else in double braces.
    """

    def __init__(self, text: str) -> None:
        parts = _VARIABLE.split(text)
        self.literals = tuple(parts[::2])
        self._names = tuple(parts[1::2])
        for literal in self.literals:
            if "{{" in literal or "}}" in literal:
                raise ValueError(f"{literal!r} has braces around what is no variable")

    @property
    def variables(self) -> frozenset[str]:
        """The names of its variables."""
        return frozenset(self._names)

    def text(self, told: Mapping[str, str]) -> str:
        """The text with what is *told* in it; raises ``ValueError`` where a variable is not among that."""
        missing = self.variables - told.keys()
        if missing:
            raise ValueError(f"nothing tells {{{{{min(missing)}}}}}")
        names = (told[name] for name in self._names)
        rest = (f"{text}{literal}" for text, literal in zip(names, self.literals[1:], strict=True))
        return self.literals[0] + "".join(rest)
