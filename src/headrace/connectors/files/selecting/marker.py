"""Files that say that others are complete. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from os.path import splitext

_VARIABLE = re.compile(r"\{(name|stem)\}")


@dataclass(frozen=True, kw_only=True)
class Marker:
    """*text* is a name, of one file for a folder; or has ``{name}`` or ``{stem}`` in it, once: one for each file.

    It lies in the folder of what it speaks of. ``{stem}`` is the name without its last extension.
    """

    text: str

    @property
    def per_folder(self) -> bool:
        """Whether one marker speaks of all files of its folder."""
        return _VARIABLE.search(self.text) is None

    def of(self, path: str) -> str:
        """Where the marker of the file at *path*, or with this key, is."""
        folder, slash, name = path.rpartition("/")
        told = {"name": name, "stem": splitext(name)[0]}  # noqa: PTH122 (hot: once per new file and plan)
        return folder + slash + _VARIABLE.sub(lambda found: told[found[1]], self.text)

    def is_one(self, path: str) -> bool:
        """Whether what is at *path*, or has this key, is a marker by its name."""
        return self._form.fullmatch(path.rpartition("/")[2]) is not None

    @cached_property
    def _form(self) -> re.Pattern[str]:
        # Between the literal texts there are the names of variables, because they are a group.
        literals = _VARIABLE.split(self.text)[::2]
        return re.compile(".+".join(map(re.escape, literals)), re.DOTALL)


def marker_problem(text: str | None) -> str | None:
    """What is wrong with *text* as the setting, or ``None``."""
    left = _VARIABLE.sub("", text or "")
    if "/" in left:
        return "A marker lies in the folder of its files: give a name without a slash."
    if "{" in left or "}" in left:
        return "Only {name} or {stem} can stand in it, such as {name}.done."
    if len(_VARIABLE.findall(text or "")) > 1:
        return "Write {name} or {stem} only once, such as {name}.done."
    if text and not left:
        return "Every name would be one of a marker. Add something to it, such as {name}.done."
    return None
