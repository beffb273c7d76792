"""What people are shown: tables, and the names that there are."""

from __future__ import annotations

import pytest

from headrace.cli.rest_client import known_names
from headrace.cli.table import table_lines


def test_columns_are_as_wide_as_a_terminal_shows_them() -> None:
    """A Chinese character takes two places, an accent of its own none."""
    rows = [("漢字", "a"), ("cafe\N{COMBINING ACUTE ACCENT}", "b"), ("abcde", "c")]

    assert ["漢字   a", "cafe\N{COMBINING ACUTE ACCENT}   b", "abcde  c"] == list(table_lines(rows))


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], "there are no connectors"),
        (["a"], "there is the connector a"),
        (["b", "a"], "there are the connectors a, b"),
        (["orders", *map(str, range(9))], "connectors: orders and 9 more"),
        ([*map(str, range(9))], "connectors: 9 of them"),
    ],
)
def test_a_mistyped_name_is_answered_with_those_that_exist(names: list[str], shown: str) -> None:
    """All names while they are few, otherwise those that look like it."""
    assert known_names(names, "ordres").endswith(shown)
