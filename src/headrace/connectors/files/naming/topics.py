"""Names of topics, made from what names of files tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from headrace.sources.text_template import TextTemplate

# Stands for the file's name as far as a topic's name can hold it.
_SAFE_NAME: Final = "filename_in_topics"
SHOWN: Final = frozenset({"filename", "path"})
"""The variables that every file's name tells, and that people write."""
ALWAYS_TOLD: Final = SHOWN | {_SAFE_NAME}
"""All variables that every file's name tells."""

_PLACEHOLDER = "${filename}"
_REFUSED = re.compile(r"[^a-zA-Z0-9._-]")
_MOST_CHARACTERS = 249


def told_by_any(path: str, name: str) -> Mapping[str, str]:
    """What the path or address of any file tells, whose path in its store is *name*."""
    filename = PurePath(path).name
    return {"filename": filename, "path": name, _SAFE_NAME: _REFUSED.sub("_", filename)}


def template_of_topic(text: str) -> TextTemplate:
    """The template that the setting ``topic`` holds; raises ``ValueError``."""
    return TextTemplate(text.replace(_PLACEHOLDER, f"{{{{{_SAFE_NAME}}}}}"))


def literal_problem(template: TextTemplate) -> str | None:
    """What in the literal text of *template* no topic's name can hold, or ``None``."""
    found = next(filter(None, map(_REFUSED.search, template.literals)), None)
    return found and f"A topic's name cannot hold {found[0]!r}."


def topic_problem(name: str) -> str | None:
    """Why no topic can be called *name*, in a sentence, or ``None``."""
    if name in ("", ".", ".."):
        return f"A topic cannot be called {name!r}."
    if len(name) > _MOST_CHARACTERS:
        return (
            f"A topic's name has at most {_MOST_CHARACTERS} characters, and this one {len(name)}."
        )
    found = _REFUSED.search(name)
    return found and f"A topic's name cannot hold {found[0]!r}."
