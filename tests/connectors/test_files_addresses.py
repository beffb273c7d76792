"""What ``files.path`` means when it speaks of a store. Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.files.selecting.addresses import (
    BELOW,
    ELSEWHERE,
    HIDDEN,
    NO_GLOB,
    Root,
    Selector,
    prefixes,
    root_of,
)

KEYS = st.text(st.sampled_from("ab/.*"), max_size=8)


@pytest.mark.parametrize(
    ("entry", "place", "text"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://bucket/a b/%20#", "bucket", "a b/%20#"),
        ("s3://bucket//a", "bucket", "/a"),
        ("s3://bucket/a\nb", "bucket", "a\nb"),
        ("s3:///a", "", "a"),
    ],
)
def test_what_is_behind_the_bucket_is_exact_text(entry: str, place: str, text: str):
    """Nothing is decoded, and no slash more or less."""
    assert (Root(scheme="s3", place=place), Selector(text=text)) == root_of(entry)


@pytest.mark.parametrize("entry", ["/a/b", "a", "s3:/a", "./s3:a", "*.txt", ""])
def test_what_has_no_scheme_is_on_local_disk(entry: str):
    """However it looks otherwise."""
    assert root_of(entry) is None


@given(key=st.text(max_size=20))
def test_an_address_gives_its_key_back(key: str):
    """Whatever the key holds."""
    root = Root(scheme="s3", place="b")

    assert key == root.key(root.address(key))
    assert root.key("s3://bb/a") is None
    assert root.key("/s3://b/a") is None


@pytest.mark.parametrize(
    ("text", "key", "flat", "deep"),
    [
        ("", "a.txt", True, True),
        ("", "in/a.txt", False, True),
        ("", "/a.txt", False, True),
        ("in", "in/a.txt", True, True),
        ("in", "index", True, True),
        ("in", "in//a.txt", False, True),
        ("in/", "in/a.txt", True, True),
        ("in/", "in//a.txt", False, True),
        ("in/", "in/b/a.txt", False, True),
        ("in/", "other", False, False),
        ("in/", "in/.a.txt", False, False),
        ("in/", "in/.b/a.txt", False, False),
        ("in", "in/.a.txt", False, False),
        ("in/.b", "in/.bb/a.txt", False, True),
        ("in/.b/", "in/.b/a.txt", True, True),
        (".b", ".b", True, True),
        ("in/*.txt", "in/a.txt", True, True),
        ("in/*.txt", "in/b/a.txt", False, False),
        ("in/*.txt", "in/.a.txt", False, False),
        ("in/**/*.txt", "in/a.txt", True, True),
        ("in/**/*.txt", "in/b/c/a.txt", True, True),
        ("in/**/*.txt", "in/b/.c/a.txt", False, False),
        ("in/**", "in/b/c", True, True),
        ("in/**/b", "in/b", True, True),
        ("in/**/b", "in/b/c", False, False),
        ("in/b?/[ac].txt", "in/bb/c.txt", True, True),
        ("in/b?/[ac].txt", "in/bb/b.txt", False, False),
        (".in/b*", ".in/b.txt", True, True),
        ("in/p*/", "in/part", False, False),
        ("A*", "a", False, False),
        ("in/.*/*.txt", "in/.b/a.txt", True, True),
        ("in/.*/*.txt", "in/.b/.a.txt", False, False),
        ("in/.*.txt", "in/.a.txt", True, True),
        ("in/*.txt", "in/.txt", False, False),
        ("in/[.]a", "in/.a", False, False),
        ("in/**/.*/*.txt", "in/b/c/.d/a.txt", True, True),
        ("in/**/.*/*.txt", "in/b/.c/d/a.txt", False, False),
        ("in/**/.*/**", "in/b/.c/d/a.txt", True, True),
        ("in/", "in/x/../c.txt", False, True),
        ("in/", "in/./c.txt", False, True),
        ("in/", "in/...", False, False),
        ("in/**", "in/x/../c.txt", True, True),
    ],
)
def test_which_keys_are_selected(text: str, key: str, flat: bool, deep: bool):  # noqa: FBT001
    """By the rules of local disk: hidden names and folders below are left out, globs match whole keys."""
    selector = Selector(text=text)

    assert (flat, deep) == tuple(selector.selects(key, recursive=each) for each in (False, True))


@given(text=KEYS, key=KEYS)
def test_what_is_selected_begins_with_the_prefix(text: str, key: str):
    """So that listing the prefix finds it; without folders below is less than with them."""
    selector = Selector(text=text)

    if selector.selects(key, recursive=False):
        assert key.startswith(selector.prefix)
        assert selector.selects(key, recursive=True)


@given(texts=st.lists(KEYS, min_size=1, max_size=4), key=KEYS)
def test_each_key_is_listed_once(texts: list[str], key: str):
    """Under exactly one prefix, when any entry begins so."""
    selectors = [Selector(text=text) for text in texts]
    listed = [prefix for prefix in prefixes(selectors) if key.startswith(prefix)]

    assert any(key.startswith(each.prefix) for each in selectors) == len(listed)


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("in/", "in/b/.a.txt", HIDDEN),
        ("in/", "in/b/a.txt", BELOW),
        ("in/*.txt", "in/.a.txt", HIDDEN),
        ("in/*.txt", "in/.a.csv", NO_GLOB),
        ("in/*.txt", "in/a.csv", NO_GLOB),
        ("in/", "out/a.txt", ELSEWHERE),
        ("in/", "in/a.txt", None),
    ],
)
def test_one_reason_is_told_why_a_key_is_not_selected(text: str, key: str, reason: str | None):
    """The true one."""
    assert reason == Selector(text=text).against(key, recursive=False)
