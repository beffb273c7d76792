"""What ``files.path`` says when it speaks of a store: ``scheme://bucket/prefix``. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL)
_MAGIC = re.compile(r"[*?\[]")
_CHOICE = re.compile(r"\[(.)[^]]*\]")
# In a store these are names like any other; a disk lists neither of them.
_NO_NAMES: Final = frozenset((".", ".."))

HIDDEN: Final = "A name in it begins with a dot, and no entry of files.path writes that out."
BELOW: Final = "It lies in a folder below the prefix, and files.recursive is false."
NO_GLOB: Final = "No glob of files.path matches it."
ELSEWHERE: Final = "Its key does not begin as files.path says."
REASONS: Final = (HIDDEN, BELOW, NO_GLOB, ELSEWHERE)
"""Why an entry of ``files.path`` does not select a key, the one that tells most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A store, as addresses name it: *place* is its bucket or container."""

    scheme: str
    place: str

    def address(self, key: str) -> str:
        """What offsets, errors and topics call the object *key*: the key as it is, behind the store."""
        return f"{self.scheme}://{self.place}/{key}"

    def key(self, address: str) -> str | None:
        """The key of the object at *address*, or ``None`` where that is not in this store."""
        start = self.address("")
        return address.removeprefix(start) if address.startswith(start) else None


@dataclass(frozen=True, kw_only=True)
class Selector:
    """Which keys of a store one entry of ``files.path`` selects.

    *text* is what is written there behind the store: a text that keys begin with, or a glob.
    """

    text: str

    @cached_property
    def prefix(self) -> str:
        """What every key that is selected begins with."""
        return _MAGIC.split(self.text, maxsplit=1)[0]

    @property
    def has_glob(self) -> bool:
        """Whether there is a glob in it."""
        return self.prefix != self.text

    def selects(self, key: str, *, recursive: bool) -> bool:
        """Whether *key* is selected; *recursive*: also in folders below the prefix, which globs name."""
        return self.against(key, recursive=recursive) is None

    def against(self, key: str, *, recursive: bool) -> str | None:
        """Why *key* is not selected, one of :data:`REASONS`; ``None`` where it is."""
        prefix = self.prefix
        if not key.startswith(prefix):
            return ELSEWHERE
        if self.has_glob:
            return self._against_glob(key[self._folder_end :].split("/"))
        rest = key[len(prefix) :]
        # Where the prefix ends inside a name, that name was written by whoever set it, hidden or not, and
        # a folder of exactly this name is meant as well.
        inside = bool(prefix) and not prefix.endswith("/")
        if "/." in rest or rest.startswith("."):
            names = rest.split("/")
            if any(map(is_hidden, names[1:] if inside else names)):
                return HIDDEN
        below = "/" in (rest.removeprefix("/") if inside else rest)
        return BELOW if below and not recursive else None

    def _against_glob(self, names: Sequence[str]) -> str | None:
        if _matches(self.patterns, names):
            return None
        hidden = any(map(is_hidden, names)) and _matches(self.patterns, names, any_name=True)
        return HIDDEN if hidden else NO_GLOB

    @property
    def patterns(self) -> Sequence[str]:
        """What names below the prefix have to match, from folder to folder; nothing without a glob."""
        return self.text[self._folder_end :].split("/") if self.has_glob else ()

    def names_in(self, key: str) -> Sequence[str]:
        """The names in *key*, which is selected, but for those that are written out in *text*."""
        names = key[self._folder_end :].split("/")
        return names[1:] if names[0] == self._written else names

    @cached_property
    def _written(self) -> str:
        return self.text[self._folder_end :]

    @cached_property
    def _folder_end(self) -> int:
        return self.prefix.rfind("/") + 1


def root_of(entry: str) -> tuple[Root, Selector] | None:
    """The store that an entry of ``files.path`` is in, and what it selects there; ``None`` for local disk."""
    found = _URL.fullmatch(entry)
    if found is None:
        return None
    scheme, place, text = found.groups()
    return Root(scheme=scheme, place=place), Selector(text=text)


def prefixes(selectors: Iterable[Selector]) -> list[str]:
    """The fewest prefixes that have to be listed, in order, none of which begins with another."""
    found = list[str]()
    for each in sorted({selector.prefix for selector in selectors}):
        if not found or not each.startswith(found[-1]):
            found.append(each)
    return found


def matched_by(glob: str, *, any_text: str = "x", one: str = "x") -> str:
    """A name that *glob*, which has no ``**``, matches, with *any_text* for each ``*`` and *one* for each ``?``."""
    return _CHOICE.sub(r"\1", glob).replace("*", any_text).replace("?", one)


def is_hidden(name: str) -> bool:
    """Whether *name* is left out where no one writes its dot."""
    return name.startswith(".") and name not in _NO_NAMES


def shows(pattern: str, name: str) -> bool:
    """Whether *pattern*, for one name, may match *name*: as in a shell, its own dot alone stands for a first one."""
    return pattern.startswith(".") or not is_hidden(name)


def _matches(patterns: Sequence[str], names: Sequence[str], *, any_name: bool = False) -> bool:
    """Whether *names*, from folder to folder, match *patterns*, of which ``**`` stands for any depth.

    *any_name*: hidden names count as any other.
    """
    if not patterns or not names:
        return not patterns and not names
    pattern, name, rest = patterns[0], names[0], patterns[1:]
    is_shown = any_name or shows(pattern, name)
    if pattern == "**":
        deeper = is_shown and len(names) > 1 and _matches(patterns, names[1:], any_name=any_name)
        return deeper or _matches(rest or ["*"], names, any_name=any_name)
    is_one = is_shown and fnmatch.fnmatchcase(name, pattern)
    return is_one and _matches(rest, names[1:], any_name=any_name)
