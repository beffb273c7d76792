"""Names that are left out although they are selected: of files that are not finished, or that hold no records. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from headrace.connectors.files.selecting.addresses import matched_by

DEFAULT_EXCLUDED: Final = (
    # Being written or transferred, as programs call that.
    *("*.tmp", "*.temp", "*.part", "*.partial", "*.filepart", "*.crdownload", "*._COPYING_", "*~"),
    # Marks and logs of Hadoop, Spark and table formats, and the folder of what is not committed yet.
    *("_SUCCESS", "_committed_*", "_started_*", "_temporary"),
    *("_metadata", "_common_metadata", "_spark_metadata", "_delta_log"),
)

# Stands for what a wildcard may stand for: more than one character, and none that a glob names.
_ANY, _ONE = "\0\0\0", "\0"


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Names that match one of *globs*, each compared with one part of a path, of files and folders alike."""

    globs: tuple[str, ...] = ()

    def beside(self, patterns: Sequence[str]) -> Exclusion:
        """What is left out of an entry of ``files.path`` that writes names as *patterns*.

        A glob that leaves out all that one of them can match does not count: whoever writes ``*.tmp`` wants them.
        """
        samples = [_sample(each) for each in patterns]
        kept = (
            glob
            for glob in self.globs
            if not any(fnmatch.fnmatchcase(each, glob) for each in samples)
        )
        return replace(self, globs=tuple(kept))

    def reason(self, names: Iterable[str]) -> str | None:
        """Why what has *names*, from folder to folder, is left out; ``None`` where it is not."""
        if self._any_of is None:
            return None
        name = next(filter(self._any_of.match, names), None)
        if name is None:
            return None
        glob = next(each for each in self.globs if fnmatch.fnmatchcase(name, each))
        return f"The name {name} matches {glob} of files.exclude."

    @cached_property
    def _any_of(self) -> re.Pattern[str] | None:
        # In one expression: a listing may have a million names.
        translated = "|".join(map(fnmatch.translate, self.globs))
        return re.compile(translated) if self.globs else None


NOTHING_EXCLUDED: Final = Exclusion()
_NONE: Final = "none"


def excluded_by(globs: Sequence[str]) -> Exclusion:
    """What the setting leaves out: *globs* beside the default ones, or alone behind ``none``; without any, nothing."""
    if not globs or globs[0] == _NONE:
        return Exclusion(globs=tuple(globs[1:]))
    return Exclusion(globs=tuple(dict.fromkeys((*DEFAULT_EXCLUDED, *globs))))


def exclusion_problem(globs: Sequence[str]) -> str | None:
    """What is wrong with *globs* as the setting, or ``None``."""
    if _NONE in globs[1:]:
        return f"{_NONE}, which leaves out the default ones, comes first: {_NONE},*.bad."
    found = next((each for each in globs if "/" in each), None)
    return (
        found and f"{found!r} is compared with one name of a path, so that it cannot hold a slash."
    )


def _sample(pattern: str) -> str:
    """A name that *pattern* matches."""
    return matched_by(pattern, any_text=_ANY, one=_ONE)
