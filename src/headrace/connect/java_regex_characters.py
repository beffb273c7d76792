"""Single characters and classes of them in Java's regular expressions, written as Python's."""

from __future__ import annotations

import re

from headrace.connect.java_characters import SHORT_CLASSES, complement, property_class
from headrace.connect.java_regex_text import RegexText

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"[pP](?:\{([^}]*)\}|(.))", re.DOTALL)
_LAST_CODE_POINT = 0x10FFFF


def shared_escape(text: RegexText) -> str:
    """What a backslash begins inside and outside of classes of characters."""
    character = text.peek()
    if character in SHORT_CLASSES:
        text.place += 1
        return SHORT_CLASSES[character]
    if character and character in "pP":
        named = text.take(_PROPERTY, "Unclosed property")
        name = named.group(1) or named.group(2) or ""
        one = property_class(name, any_case="i" in text.flags)
        return complement(one) if character == "P" else one
    return re.escape(_escaped_character(text))


def _escaped_character(text: RegexText) -> str:
    character = text.peek()
    code = _HEX.match(text.pattern, text.place) or _OCTAL.match(text.pattern, text.place)
    if code is not None:
        text.place = code.end()
        digits = next(each for each in code.groups() if each)
        number = int(digits, 8 if character == "0" else 16)
        if number > _LAST_CODE_POINT:
            raise text.problem("Hexadecimal codepoint is too big")
        return chr(number)
    text.place += 1
    if character == "c" and text.peek():
        text.place += 1
        return chr(ord(text.pattern[text.place - 1]) ^ 64)
    if character in _CONTROLS:
        return _CONTROLS[character]
    if not character or (character.isascii() and character.isalnum()):
        raise text.problem("Illegal/unsupported escape sequence")
    return character


def character_class(text: RegexText) -> str:
    """A class of characters, from its opening bracket on."""
    text.place += 1
    negated = text.peek() == "^"
    text.place += negated
    parts = [_union(text)]
    while text.peek(2) == "&&":
        text.place += 2
        if text.peek() == "&":
            raise text.problem("Bad class syntax")
        parts.append(_union(text))
    if text.peek() != "]":
        raise text.problem("Unclosed character class")
    text.place += 1
    *others, last = parts
    one = f"(?:{''.join(f'(?={each})' for each in others)}{last})" if others else last
    return complement(one) if negated else one


def _union(text: RegexText) -> str:
    """What stands between ``&&``."""
    members, nested = list[str](), list[str]()
    while text.place < len(text.pattern) and text.peek(2) != "&&":
        if text.peek() == "]" and (members or nested):
            break
        if text.peek() == "[":
            nested.append(character_class(text))
        elif "x" in text.flags and text.peek() in " \t\n\r\f\v#":
            raise text.problem("White space in a class is not supported with the flag x")
        else:
            _member(text, members, nested)
    if not members and not nested:
        ended = text.place >= len(text.pattern)
        raise text.problem("Unclosed character class" if ended else "Bad class syntax")
    plain = [f"[{''.join(members)}]"] if members else []
    return f"(?:{'|'.join(plain + nested)})" if nested else plain[0]


def _member(text: RegexText, members: list[str], nested: list[str]) -> None:
    """One character, a range or an escape."""
    first = _class_character(text)
    if len(first) != 1:
        nested.append(first)
        return
    ahead = text.pattern[text.place + 1 : text.place + 2]
    if text.peek() != "-" or ahead in {"]", "["}:
        members.append(re.escape(first))
        return
    text.place += 1
    last = _class_character(text)
    if len(last) != 1 or last < first:
        raise text.problem("Illegal character range")
    members.append(f"{re.escape(first)}-{re.escape(last)}")


def _class_character(text: RegexText) -> str:
    """A character, or the pattern of a class that an escape stands for."""
    character = text.peek()
    text.place += 1
    if character != "\\":
        return character
    if text.peek() and text.peek() in "dDwWsShHvVpP":
        return shared_escape(text)
    return _escaped_character(text)
