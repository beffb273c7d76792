"""The syntax of Java's regular expressions, read once and written as Python's."""

from __future__ import annotations

import re
from typing import Final

from headrace.connect.java_characters import (
    ANY,
    LINE_ENDS,
    SHORT_CLASSES,
    complement,
    property_class,
)

_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?", re.ASCII)
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_OPENINGS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_KNOWN_FLAGS = frozenset("imsxd")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"[pP](?:\{([^}]*)\}|(.))", re.DOTALL)
_QUOTED = re.compile(r"(\\[^Q])|\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_LINE_END: Final = rf"\r\n|[{LINE_ENDS}\x0b\f]"
_LAST_CODE_POINT = 0x10FFFF


def translated(pattern: str) -> str:
    """*pattern* for ``re.compile`` with ``re.ASCII``. Raises ``ValueError`` with a sentence."""
    return _Translation(_unquoted(pattern)).whole()


def _unquoted(pattern: str) -> str:
    r"""*pattern* with what stands in ``\Q…\E`` as escapes."""

    def escaped(found: re.Match[str]) -> str:
        if found.group(1):
            return found.group(1)
        return "".join(f"\\x{{{ord(each):x}}}" for each in found.group(2))

    return _QUOTED.sub(escaped, pattern)


class _Translation:
    """One pattern on its way; *flags* are those that hold at its place."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._flags = frozenset[str]()
        self._groups = 0
        self._names = set[str]()

    def whole(self) -> str:
        """All of it."""
        written = self._alternatives()
        if self._place < len(self._pattern):
            raise self._problem("Unmatched closing ')'")
        return written

    def _problem(self, what: str) -> ValueError:
        return ValueError(f"{what} near index {self._place}")

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._place : self._place + length]

    def _take(self, found: re.Match[str] | None, otherwise: str) -> re.Match[str]:
        """Go on behind *found*."""
        if found is None:
            raise self._problem(otherwise)
        self._place = found.end()
        return found

    def _alternatives(self) -> str:
        """Up to the end of the group or of the pattern."""
        written = list[str]()
        while self._skip() and self._peek() != ")":
            if self._peek() == "|":
                self._place += 1
                written.append("|")
            else:
                written.append(self._repeated())
        return "".join(written)

    def _skip(self) -> bool:
        """Pass over white space and comments where these do not count; whether anything is left."""
        while "x" in self._flags and self._place < len(self._pattern):
            if self._peek() == "#":
                end = self._pattern.find("\n", self._place)
                self._place = len(self._pattern) if end < 0 else end
            elif self._peek() in " \t\n\r\f\v":
                self._place += 1
            else:
                break
        return self._place < len(self._pattern)

    def _repeated(self) -> str:
        """One thing, and how often."""
        if self._peek() in "*+?{":
            what = "Illegal repetition" if self._peek() == "{" else "Dangling meta character"
            raise self._problem(f"{what} '{self._peek()}'")
        atom = self._atom()
        self._skip()
        if not self._peek() or self._peek() not in "*+?{":
            return atom
        times = self._take(_REPEAT.match(self._pattern, self._place), "Illegal repetition")
        self._skip()
        return f"(?:{atom}){times.group()}"

    def _atom(self) -> str:
        character = self._peek()
        if character == "(":
            return self._group()
        if character == "[":
            return self._cased(self._class())
        self._place += 1
        if character == "\\":
            return self._escape()
        return self._special(character) or self._cased(re.escape(character))

    def _special(self, character: str) -> str | None:
        ends = r"\n" if "d" in self._flags else LINE_ENDS
        if character == ".":
            return ANY if "s" in self._flags else f"[^{ends}]"
        if character == "^":
            return self._line_start(ends) if "m" in self._flags else r"\A"
        if character == "$":
            return self._line_end(ends, "" if "m" in self._flags else r"\Z")
        return None

    def _line_start(self, ends: str) -> str:
        # Java finds no beginning of a line at the end of a text, not even in an empty one.
        if ends == LINE_ENDS:
            return rf"(?:\A|(?<=[{ends}])(?<!\r(?=\n)))(?!\Z)"
        return r"(?:\A|(?<=\n))(?!\Z)"

    def _line_end(self, ends: str, then: str) -> str:
        if ends != LINE_ENDS:
            return rf"(?=\n{then}|\Z)"
        return rf"(?:(?=\r\n{then}|[\r\u0085\u2028\u2029]{then}|\Z)|(?<!\r)(?=\n{then}))"

    def _cased(self, one: str) -> str:
        """*one*, in whatever case where that does not count."""
        return f"(?i:{one})" if "i" in self._flags else one

    def _group(self) -> str:
        flags = _FLAGS.match(self._pattern, self._place)
        before = self._flags
        if flags is not None and (flags.group(1) or flags.group(2)):
            self._place = flags.end()
            self._flags = self._changed(flags.group(1), flags.group(2) or "")
            if flags.group(3) == ")":
                return "(?:)"
            return self._closed("(?:", before)
        return self._closed(self._opening(), before)

    def _changed(self, added: str, removed: str) -> frozenset[str]:
        for each in added + removed:
            if each in "uU":
                raise self._problem(f"The flag {each} is not supported")
            if each not in _KNOWN_FLAGS:
                raise self._problem("Unknown inline modifier")
        return (self._flags | set(added)) - set(removed)

    def _opening(self) -> str:
        for opening in _OPENINGS:
            if self._pattern.startswith(opening, self._place):
                self._place += len(opening)
                return opening
        if self._peek(2) != "(?":
            self._place += 1
            self._groups += 1
            return "("
        self._place += 2
        name = self._take(_NAME.match(self._pattern, self._place), "Unknown group type").group(1)
        self._groups += 1
        self._names.add(name)
        return f"(?P<{name}>"

    def _closed(self, opening: str, flags: frozenset[str]) -> str:
        """The rest of a group, behind which *flags* hold again."""
        written = self._alternatives()
        if self._peek() != ")":
            raise self._problem("Unclosed group")
        self._place += 1
        self._flags = flags
        return f"{opening}{written})"

    def _escape(self) -> str:
        character = self._peek()
        if character in _ANCHORS:
            self._place += 1
            return _ANCHORS[character]
        if character == "Z":
            self._place += 1
            return self._line_end(r"\n" if "d" in self._flags else LINE_ENDS, r"\Z")
        if character == "k":
            self._place += 1
            name = self._take(_NAME.match(self._pattern, self._place), "Invalid group name")
            if name.group(1) not in self._names:
                raise self._problem(f"named capturing group <{name.group(1)}> does not exist")
            return self._cased(f"(?P={name.group(1)})")
        if character and character in "123456789":
            return self._cased(self._back_reference())
        return self._cased(self._shared_escape())

    def _back_reference(self) -> str:
        number = int(self._peek())
        self._place += 1
        while self._peek().isdecimal() and int(f"{number}{self._peek()}") <= self._groups:
            number = int(f"{number}{self._peek()}")
            self._place += 1
        if number > self._groups:
            raise self._problem(f"The group {number} is not there yet")
        return f"(?:\\{number})"

    def _shared_escape(self) -> str:
        """What a backslash begins inside and outside of classes of characters."""
        character = self._peek()
        if character in SHORT_CLASSES:
            self._place += 1
            return SHORT_CLASSES[character]
        if character and character in "pP":
            named = self._take(_PROPERTY.match(self._pattern, self._place), "Unclosed property")
            name = named.group(1) or named.group(2) or ""
            one = property_class(name, any_case="i" in self._flags)
            return complement(one) if character == "P" else one
        return re.escape(self._escaped_character())

    def _escaped_character(self) -> str:
        character = self._peek()
        code = _HEX.match(self._pattern, self._place) or _OCTAL.match(self._pattern, self._place)
        if code is not None:
            self._place = code.end()
            digits = next(each for each in code.groups() if each)
            number = int(digits, 8 if character == "0" else 16)
            if number > _LAST_CODE_POINT:
                raise self._problem("Hexadecimal codepoint is too big")
            return chr(number)
        self._place += 1
        if character == "c" and self._peek():
            self._place += 1
            return chr(ord(self._pattern[self._place - 1]) ^ 64)
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character or (character.isascii() and character.isalnum()):
            raise self._problem("Illegal/unsupported escape sequence")
        return character

    def _class(self) -> str:
        """A class of characters, from its opening bracket on."""
        self._place += 1
        negated = self._peek() == "^"
        self._place += negated
        parts = [self._union()]
        while self._peek(2) == "&&":
            self._place += 2
            if self._peek() == "&":
                raise self._problem("Bad class syntax")
            parts.append(self._union())
        if self._peek() != "]":
            raise self._problem("Unclosed character class")
        self._place += 1
        *others, last = parts
        one = f"(?:{''.join(f'(?={each})' for each in others)}{last})" if others else last
        return complement(one) if negated else one

    def _union(self) -> str:
        """What stands between ``&&``."""
        members, nested = list[str](), list[str]()
        while self._place < len(self._pattern) and self._peek(2) != "&&":
            if self._peek() == "]" and (members or nested):
                break
            if self._peek() == "[":
                nested.append(self._class())
            elif "x" in self._flags and self._peek() in " \t\n\r\f\v#":
                raise self._problem("White space in a class is not supported with the flag x")
            else:
                self._member(members, nested)
        if not members and not nested:
            raise self._problem("Bad class syntax")
        plain = [f"[{''.join(members)}]"] if members else []
        return f"(?:{'|'.join(plain + nested)})" if nested else plain[0]

    def _member(self, members: list[str], nested: list[str]) -> None:
        """One character, a range or an escape."""
        first = self._class_character()
        if len(first) != 1:
            nested.append(first)
            return
        ahead = self._pattern[self._place + 1 : self._place + 2]
        if self._peek() != "-" or ahead in {"]", "["}:
            members.append(re.escape(first))
            return
        self._place += 1
        last = self._class_character()
        if len(last) != 1 or last < first:
            raise self._problem("Illegal character range")
        members.append(f"{re.escape(first)}-{re.escape(last)}")

    def _class_character(self) -> str:
        """A character, or the pattern of a class that an escape stands for."""
        character = self._peek()
        self._place += 1
        if character != "\\":
            return character
        if self._peek() and self._peek() in "dDwWsShHvVpP":
            return self._shared_escape()
        return self._escaped_character()


_ANCHORS = {
    "A": r"\A",
    "z": r"\Z",
    "b": r"\b",
    # Python's own finds nothing in an empty text.
    "B": r"(?!\b)",
    "R": f"(?:{_LINE_END})",
}
