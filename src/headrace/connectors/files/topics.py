"""The topic of a file's records."""

from __future__ import annotations

import re
from pathlib import PurePath

_PLACEHOLDER = "${filename}"
_REFUSED = re.compile(r"[^a-zA-Z0-9._-]")


def topic_of(template: str, path: str) -> str:
    """*template* with the name of the file at *path* in it, as far as a topic's name can hold it."""
    return template.replace(_PLACEHOLDER, _REFUSED.sub("_", PurePath(path).name))
