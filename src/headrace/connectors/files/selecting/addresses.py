"""What ``files.path`` says when it speaks of a store: ``scheme://bucket/prefix``. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL)
_MAGIC = re.compile(r"[*?\[]")
_CHOICE = re.compile(r"\[(.)[^]]*\]")


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
        prefix = self.prefix
        if not key.startswith(prefix):
            return False
        if self.has_glob:
            names = key[self._folder_end :].split("/")
            return not _hidden(names) and _matches(self.patterns, names)
        rest = key[len(prefix) :]
        # Where the prefix ends inside a name, that name was written by whoever set it, hidden or not, and
        # a folder of exactly this name is meant as well.
        inside = bool(prefix) and not prefix.endswith("/")
        if "/." in rest or (rest.startswith(".") and not inside):
            return False
        return recursive or "/" not in (rest.removeprefix("/") if inside else rest)

    @property
    def patterns(self) -> Sequence[str]:
        """What names below the prefix have to match, from folder to folder; nothing without a glob."""
        return self.text[self._folder_end :].split("/") if self.has_glob else ()

    def names_in(self, key: str) -> Sequence[str]:
        """The names in *key*, which is selected, but for those that are written out in *text*."""
        named, *below = key[self._folder_end :].split("/")
        written = self.text[self._folder_end :]
        return below if named == written else (named, *below)

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


def _hidden(names: Sequence[str]) -> bool:
    return any(name.startswith(".") for name in names)


def _matches(patterns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether *names*, from folder to folder, match *patterns*, of which ``**`` stands for any depth."""
    if not patterns or not names:
        return not patterns and not names
    pattern, rest = patterns[0], patterns[1:]
    if pattern == "**":
        deeper = len(names) > 1 and _matches(patterns, names[1:])
        return deeper or _matches(rest or ["*"], names)
    return fnmatch.fnmatchcase(names[0], pattern) and _matches(rest, names[1:])
