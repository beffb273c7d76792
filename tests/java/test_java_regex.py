"""Java's regular expressions in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.java.regex import java_regex, java_replacement, regex_problem

# What Java itself said: which of the texts match each pattern as a whole.
JAVA: Mapping[str, Any] = json.loads((Path(__file__).parent / "java_regexes.json").read_text())
MATCHED: Mapping[str, Sequence[str]] = JAVA["matched"]


@pytest.mark.parametrize("pattern", MATCHED)
def test_a_pattern_matches_what_it_matches_in_java(pattern: str) -> None:
    """And nothing else."""
    matched = [text for text in JAVA["texts"] if java_regex(pattern).fullmatch(text)]

    assert MATCHED[pattern] == matched


@pytest.mark.parametrize("pattern", [*JAVA["invalid"], *JAVA["without_equal"]])
def test_what_is_no_pattern_or_has_no_equal_is_refused(pattern: str) -> None:
    """With a sentence, before a connector starts."""
    reported = regex_problem(pattern)

    assert reported is not None
    assert reported.startswith("Invalid regex: ")


@given(text=st.text(), other=st.text())
def test_a_quotation_matches_itself_alone(text: str, other: str) -> None:
    r"""Whatever stands between ``\Q`` and ``\E``."""
    pattern = java_regex("\\Q" + text.replace("\\E", "") + "\\E")

    assert pattern.fullmatch(text.replace("\\E", ""))
    assert bool(pattern.fullmatch(other)) == (other == text.replace("\\E", ""))


@given(pattern=st.text("ab[]^-&()|.*+?{}\\dwQE$1,", max_size=12), text=st.text("ab-^&", max_size=4))
def test_whatever_is_written_is_translated_or_refused(pattern: str, text: str) -> None:
    """Never is anything but ``ValueError`` raised, nor a group made that was not written."""
    try:
        translated = java_regex(pattern)
    except ValueError:
        return

    translated.fullmatch(text)
    assert translated.groups <= pattern.count("(")


@given(
    inner=st.text("abc", min_size=1), outer=st.text("abc", min_size=1), one=st.sampled_from("abcd")
)
def test_classes_are_sets(inner: str, outer: str, one: str) -> None:
    """Unions, intersections and complements of them are what those of sets are."""

    def has(pattern: str) -> bool:
        return java_regex(pattern).fullmatch(one) is not None

    first, second = one in inner, one in outer
    assert has(f"[{inner}[{outer}]]") == (first or second)
    assert has(f"[{inner}&&[{outer}]]") == (first and second)
    assert has(f"[{inner}&&[^{outer}]]") == (first and not second)
    assert has(f"[^{inner}[{outer}]]") == (not (first or second))


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        ("(t)(o)?(x)?p", "$1-$3-$2", "top", "t--o"),
        ("(?<n>t).*", "${n}\\$x\\\\", "top", "t$x\\"),
        ("(t).*", "$12$0", "top", "t2top"),
        ("t|top", "X", "top", "Xop"),
        ("t??.*?", "X", "top", "Xtop"),
        (".*", "", "top", ""),
        ("x", "y", "top", "top"),
        ("()()()()()()()()()(t)(o)", "$11$10", "to", "ot"),
    ],
)
def test_the_first_match_is_replaced(
    pattern: str, replacement: str, text: str, expected: str
) -> None:
    """A group's number takes as many digits as there are groups for; groups that took no part are empty."""
    compiled = java_regex(pattern)

    assert expected == java_replacement(replacement, compiled).first(compiled, text)


@pytest.mark.parametrize(
    ("replacement", "reported"),
    [
        ("$2", "No group 2"),
        ("${q}", "No group with name {q}"),
        ("a\\", "character to be escaped is missing"),
        ("a$", "Illegal group reference: group index is missing"),
        ("a$x", "Illegal group reference"),
        ("${1}", "Illegal group reference"),
    ],
)
def test_a_replacement_that_cannot_be_made_is_refused(replacement: str, reported: str) -> None:
    """In Java's words."""
    with pytest.raises(ValueError, match=f"^{re.escape(reported)}$"):
        java_replacement(replacement, java_regex("(t)"))
