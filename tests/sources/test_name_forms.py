"""Forms of names, and texts made of what they tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.sources.key_template import KeyTemplate
from headrace.sources.name_pattern import NamePattern, pattern_problem
from headrace.sources.text_template import TextTemplate

WORDS = st.text("abc-._ {}", max_size=5)


@pytest.mark.parametrize(
    ("pattern", "name", "told"),
    [
        (
            r"topic=(?<topic>[^/]+)/p=(?<partition>\d+)/",
            "x/topic=a/p=7/y",
            {"topic": "a", "partition": "7"},
        ),
        (r"(?P<topic>[a-z]+)", "/IN/orders.csv", {"topic": "orders"}),
        (r"(?<!x)(?<=/)(?P<k>b)?c", "a/c", {}),
        (r"\(?<a", "(<a", {}),
        ("nowhere", "a", None),
    ],
)
def test_named_groups_tell(pattern: str, name: str, told: dict[str, str] | None):
    """Anywhere in a name, under Python's and Java's way of naming; a group that took no part tells nothing."""
    assert told == NamePattern(pattern).found(name)


def test_what_is_no_pattern_is_a_sentence():
    """With the reason."""
    assert "is no regular expression: missing )" in (pattern_problem("(a") or "")
    assert None is pattern_problem("a")


def test_a_key_of_another_form_is_told_apart_from_one_that_tells_nothing():
    """None, and nothing."""
    template = KeyTemplate("plain")

    assert ({}, None) == (template.found("plain"), template.found("other"))


@given(
    told=st.dictionaries(st.sampled_from(["a", "b_1"]), WORDS), literal=st.sampled_from(["", "-x."])
)
def test_a_text_is_what_was_told(told: dict[str, str], literal: str):
    """In its places, as it is, braces included."""
    template = TextTemplate(literal.join(f"{{{{ {name} }}}}" for name in told))

    assert literal.join(told.values()) == template.text(told)
    assert told.keys() == template.variables


def test_a_text_needs_all_its_variables():
    """It is never sent with a hole in it."""
    with pytest.raises(ValueError, match=r"nothing tells \{\{b}}"):
        TextTemplate("{{a}}-{{b}}").text({"a": "x"})


@pytest.mark.parametrize("text", ["{{a", "a}}", "{{a:b=c}}", "{{}}", "{{a.b}}"])
def test_other_braces_are_refused(text: str):
    """They are not read as plain text."""
    with pytest.raises(ValueError, match="braces around what is no variable"):
        TextTemplate(text)
