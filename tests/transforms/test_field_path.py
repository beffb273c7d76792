"""The syntax of fields: what a path says, and that every way to a field can be written (KIP-821)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.transforms.fields import parsed_path

NAMES = some.text(some.sampled_from("ab.`é "), max_size=6)


def written(name: str) -> str:
    """*name* in backticks; one of its own has a backslash where a dot follows."""
    inner = name.replace("`.", "\\`.")
    return f"`{inner}`"


@given(names=some.lists(NAMES.filter(lambda name: not name.endswith("`")), min_size=1))
def test_every_way_can_be_written(names: Sequence[str]) -> None:
    """Names in backticks are read as they were; the syntax has no way for one that ends with a backtick."""
    assert tuple(names) == parsed_path(".".join(map(written, names)), "V2")


@given(names=some.lists(some.text(some.sampled_from("abé "), max_size=4), min_size=1))
def test_plain_names_need_no_backticks(names: Sequence[str]) -> None:
    """Names without dots and backticks are separated by dots alone; nothing at all is no way."""
    path = ".".join(names)

    assert (tuple(names) if path else ()) == parsed_path(path, "V2")


@given(text=some.text())
def test_the_first_version_has_no_syntax(text: str) -> None:
    """In V1 everything is the name of one field."""
    assert (text,) == parsed_path(text, "v1")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("a`b.c", ["a`b", "c"]),
        ("`a`b`.c", ["a`b", "c"]),
        ("`a\\`.b`.c", ["a`.b", "c"]),
        ("a.", ["a", ""]),
        (".a", ["", "a"]),
        ("..", ["", "", ""]),
        ("``", [""]),
    ],
)
def test_a_path_is_read_as_kafka_connect_reads_it(path: str, names: Sequence[str]) -> None:
    """Dots separate; backticks hold together, and count for themselves in the midst of a name."""
    assert tuple(names) == parsed_path(path, "V2")


@pytest.mark.parametrize(("path", "place"), [("`a", 0), ("a.`b", 2), ("`a.b\\`", 0), ("`", 0)])
def test_a_backtick_without_its_pair_is_refused(path: str, place: int) -> None:
    """The message says where it is."""
    with pytest.raises(ValueError, match=rf"Incomplete backtick pair .* at position {place} "):
        parsed_path(path, "V2")
