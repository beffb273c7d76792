"""A secret that a program has taken apart or written again is found; the words of every sentence are not hidden."""

from __future__ import annotations

import posixpath
import string
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.observe.secret_masking import Secrets

NAMES = st.from_regex(r"[A-Za-z]{4,9}[0-9]{2}-[A-Za-z0-9._]{4,9}", fullmatch=True)
WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=15)
STEPS = st.sampled_from(["/", "//", "/./", "/x/../"])


def masked(secret: str, text: str) -> str:
    """*text*, when *secret* is what a placeholder stands for."""
    return Secrets(values={secret: "${a:b}"}).masked(text)


@given(st.lists(st.tuples(STEPS, NAMES), min_size=1, max_size=4), st.sampled_from(["", "/"]))
def test_no_segment_of_a_path_shows(steps: list[tuple[str, str]], end: str):
    """Not by itself, and not in the path as it is written again."""
    path = "".join(map("".join, steps)) + end
    shown = masked(path, f"{path} {posixpath.normpath(path)} {' '.join(name for _, name in steps)}")

    assert not [name for _, name in steps if name in shown]


@given(user=NAMES, password=NAMES, host=NAMES, folder=NAMES, query=NAMES)
def test_no_part_of_an_address_shows(
    *, user: str, password: str, host: str, folder: str, query: str
):
    """As clients take it apart: the host in small letters, the rest encoded or decoded."""
    address = f"https://{user}:{quote(password + '@')}@{host}.x/{folder}/?a={query}"
    split = urlsplit(address)
    shown = masked(address, f"{split} {split.hostname} no login of {user} with {password}@")

    parts = (user, password, host, host.lower(), folder, query)
    assert not [part for part in parts if part in shown]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("AccountName=abc;AccountKey=aB3/x+9zz/kk==;Suffix=core", "aB3/x+9zz/kk=="),
        ('x.PlainLoginModule required username="a" password="correcthorse";', "correcthorse"),
        ('{"user": "a", "password": "correcthorse"}', "correcthorse"),
        ("postgres://a:correcthorse@db/customers", "correcthorse"),
        ("host=db\nuser=Gehe1mnis", "Gehe1mnis"),
        ("s3://Eimer-7788/pre/", "s3://Eimer-7788"),
        ("/nosuch/a/../in/", "/nosuch/in"),
    ],
)
def test_no_part_of_a_connection_s_line_shows(line: str, part: str):
    """A password may be a word there, and have a separator in it."""
    assert part not in masked(line, f"cannot use {part}!")


@pytest.mark.parametrize("value", ["true", "FALSE", "8080", "-1", "10000"])
def test_switches_ports_and_sizes_are_not_hidden(value: str):
    """They are in every line of a log."""
    assert f"port {value}" == masked(value, f"port {value}")


@given(words=st.lists(WORDS, min_size=2), glue=st.sampled_from(["/", "://", "?", "=", ";", ":"]))
def test_words_of_a_value_are_not_hidden(words: list[str], glue: str):
    """A folder or an option that is called as anything else would spoil every sentence."""
    sentence = " ".join(words)

    assert sentence == masked(glue.join(["/srv", *words, ""]), sentence)


def test_a_day_in_a_path_is_not_hidden():
    """Each line of the log begins with one."""
    line = "2026-11-22T10:00:00Z incoming"

    assert line == masked("/srv/incoming/2026-11-22/", line)
