"""Java's regular expressions, as far as Python's can express them; anything else is refused, never misinterpreted."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

from headrace.java.characters import ANY, LINE_ENDS, RegexText, character_class, shared_escape

_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?", re.ASCII)
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_OPENINGS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_KNOWN_FLAGS = frozenset("imsxd")
_LINE_END: Final = rf"\r\n|[{LINE_ENDS}\x0b\f]"


def translated(pattern: str) -> str:
    """*pattern* for ``re.compile`` with ``re.ASCII``. Raises ``ValueError`` with a sentence."""
    return _Translation(pattern).whole()


class _Translation:
    """Translates one pattern; *flags* are those in effect at the current place."""

    def __init__(self, pattern: str) -> None:
        self._text = RegexText(pattern)
        self._groups = 0
        self._names = set[str]()

    def whole(self) -> str:
        """The whole pattern for Python."""
        written = self._alternatives()
        if self._text.place < len(self._text.pattern):
            raise self._text.problem("Unmatched closing ')'")
        return written

    def _alternatives(self) -> str:
        """Up to the end of the group or of the pattern."""
        written = list[str]()
        while self._skip() and self._text.peek() != ")":
            if self._text.peek() == "|":
                self._text.place += 1
                written.append("|")
            else:
                written.append(self._repeated())
        return "".join(written)

    def _skip(self) -> bool:
        """Skip white space and comments where flags say so; returns whether anything is left."""
        while "x" in self._text.flags and self._text.place < len(self._text.pattern):
            if self._text.peek() == "#":
                end = self._text.pattern.find("\n", self._text.place)
                self._text.place = len(self._text.pattern) if end < 0 else end
            elif self._text.peek() in " \t\n\r\f\v":
                self._text.place += 1
            else:
                break
        return self._text.place < len(self._text.pattern)

    def _repeated(self) -> str:
        """One element with its quantifier."""
        if self._text.peek() in "*+?{":
            what = "Illegal repetition" if self._text.peek() == "{" else "Dangling meta character"
            raise self._text.problem(f"{what} '{self._text.peek()}'")
        atom = self._atom()
        self._skip()
        if not self._text.peek() or self._text.peek() not in "*+?{":
            return atom
        times = self._text.take(_REPEAT, "Illegal repetition")
        self._skip()
        return f"(?:{atom}){times.group()}"

    def _atom(self) -> str:
        character = self._text.peek()
        if character == "(":
            return self._group()
        if character == "[":
            return self._cased(character_class(self._text))
        self._text.place += 1
        if character == "\\":
            return self._escape()
        return self._special(character) or self._cased(re.escape(character))

    def _special(self, character: str) -> str | None:
        ends = r"\n" if "d" in self._text.flags else LINE_ENDS
        if character == ".":
            return ANY if "s" in self._text.flags else f"[^{ends}]"
        if character == "^":
            return self._line_start(ends) if "m" in self._text.flags else r"\A"
        if character == "$":
            return self._line_end(ends, "" if "m" in self._text.flags else r"\Z")
        return None

    def _line_start(self, ends: str) -> str:
        # In Java, no line begins at the end of a text, not even of an empty one.
        if ends == LINE_ENDS:
            return rf"(?:\A|(?<=[{ends}])(?<!\r(?=\n)))(?!\Z)"
        return r"(?:\A|(?<=\n))(?!\Z)"

    def _line_end(self, ends: str, then: str) -> str:
        if ends != LINE_ENDS:
            return rf"(?=\n{then}|\Z)"
        return rf"(?:(?=\r\n{then}|[\r\u0085\u2028\u2029]{then}|\Z)|(?<!\r)(?=\n{then}))"

    def _cased(self, one: str) -> str:
        """*one*, in any case if the flag says so."""
        return f"(?i:{one})" if "i" in self._text.flags else one

    def _group(self) -> str:
        flags = _FLAGS.match(self._text.pattern, self._text.place)
        before = self._text.flags
        if flags is not None and (flags.group(1) or flags.group(2)):
            self._text.place = flags.end()
            self._text.flags = self._changed(flags.group(1), flags.group(2) or "")
            if flags.group(3) == ")":
                return "(?:)"
            return self._closed("(?:", before)
        return self._closed(self._opening(), before)

    def _changed(self, added: str, removed: str) -> frozenset[str]:
        for each in added + removed:
            if each in "uU":
                raise self._text.problem(f"The flag {each} is not supported")
            if each not in _KNOWN_FLAGS:
                raise self._text.problem("Unknown inline modifier")
        return (self._text.flags | set(added)) - set(removed)

    def _opening(self) -> str:
        for opening in _OPENINGS:
            if self._text.pattern.startswith(opening, self._text.place):
                self._text.place += len(opening)
                return opening
        if self._text.peek(2) != "(?":
            self._text.place += 1
            self._groups += 1
            return "("
        self._text.place += 2
        name = self._text.take(_NAME, "Unknown group type").group(1)
        self._groups += 1
        self._names.add(name)
        return f"(?P<{name}>"

    def _closed(self, opening: str, flags: frozenset[str]) -> str:
        """The rest of a group, after which *flags* apply again."""
        written = self._alternatives()
        if self._text.peek() != ")":
            raise self._text.problem("Unclosed group")
        self._text.place += 1
        self._text.flags = flags
        return f"{opening}{written})"

    def _escape(self) -> str:
        character = self._text.peek()
        if character in _ANCHORS:
            self._text.place += 1
            return _ANCHORS[character]
        if character == "Z":
            self._text.place += 1
            return self._line_end(r"\n" if "d" in self._text.flags else LINE_ENDS, r"\Z")
        if character == "k":
            self._text.place += 1
            name = self._text.take(_NAME, "Invalid group name")
            if name.group(1) not in self._names:
                raise self._text.problem(f"named capturing group <{name.group(1)}> does not exist")
            return self._cased(f"(?P={name.group(1)})")
        if character and character in "123456789":
            return self._cased(self._back_reference())
        return self._cased(shared_escape(self._text))

    def _back_reference(self) -> str:
        number = int(self._text.peek())
        self._text.place += 1
        while self._text.peek().isdecimal() and int(f"{number}{self._text.peek()}") <= self._groups:
            number = int(f"{number}{self._text.peek()}")
            self._text.place += 1
        if number > self._groups:
            raise self._text.problem(f"The group {number} is not there yet")
        return f"(?:\\{number})"


_ANCHORS = {
    "A": r"\A",
    "z": r"\Z",
    "b": r"\b",
    # Python's own does not match in an empty text.
    "B": r"(?!\b)",
    "R": f"(?:{_LINE_END})",
}


@functools.cache
def java_regex(pattern: str) -> re.Pattern[str]:
    """*pattern* for Python. Pure. Raises ``ValueError`` with a sentence for an invalid or untranslatable pattern."""
    try:
        return re.compile(translated(pattern), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"Invalid regex: {error}") from None


def regex_problem(pattern: str) -> str | None:
    """What is wrong with *pattern*, or ``None``; for settings."""
    try:
        java_regex(pattern)
    except ValueError as error:
        return str(error)
    return None


_PART = re.compile(r"\\(.)|\$([0-9]+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|([^\\$]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JavaReplacement:
    """A parsed replacement: texts, and groups of a pattern by their numbers; immutable."""

    parts: tuple[str | int, ...]

    def of(self, match: re.Match[str]) -> str:
        """The text that replaces *match*; a group without a match is empty. Pure."""
        return "".join(
            (match.group(part) or "") if isinstance(part, int) else part for part in self.parts
        )

    def first(self, pattern: re.Pattern[str], text: str) -> str:
        """*text* with the first match of *pattern* replaced. Pure."""
        found = pattern.search(text)
        if found is None:
            return text
        return f"{text[: found.start()]}{self.of(found)}{text[found.end() :]}"


def java_replacement(replacement: str, pattern: re.Pattern[str]) -> JavaReplacement:
    """*replacement* for matches of *pattern*. Pure. Raises ``ValueError`` with Java's sentence."""
    parts, place = list[str | int](), 0
    while place < len(replacement):
        found = _PART.match(replacement, place)
        if found is None:
            raise ValueError(_illegal(replacement[place:]))
        escaped, digits, name, text = found.groups()
        place = found.end()
        if digits:
            number, rest = _group(digits, pattern)
            parts += (number, rest)
        elif name:
            parts.append(_named(name, pattern))
        else:
            parts.append(escaped or text)
    return JavaReplacement(tuple(parts))


def _group(digits: str, pattern: re.Pattern[str]) -> tuple[int, str]:
    """The longest number at the start of *digits* that is the number of a group, and the remaining digits."""
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= pattern.groups:
        length += 1
    number = int(digits[:length])
    if number > pattern.groups:
        raise ValueError(f"No group {number}")
    return number, digits[length:]


def _named(name: str, pattern: re.Pattern[str]) -> int:
    if name not in pattern.groupindex:
        raise ValueError(f"No group with name {{{name}}}")
    return pattern.groupindex[name]


def _illegal(rest: str) -> str:
    if rest == "\\":
        return "character to be escaped is missing"
    if rest == "$":
        return "Illegal group reference: group index is missing"
    return "Illegal group reference"
