"""The page that compares with Kafka Connect: nothing of the REST API is left out, and each row has a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from headrace.herder.protocol import Herder
from headrace.observe.log_levels import Levels
from headrace.rest.app import admin_routes, description_routes, herder_routes, metrics_routes

PAGE = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text()
COMPARED = (
    "Endpoints",
    "Requests and answers",
    "Create and validate",
    "States and restarts",
    "Offsets",
)


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    [text] = [each for each in section if each.startswith(f"{heading}\n")]
    lines = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    return [re.split(r" \|(?: |$)", line) for line in lines[1:]]


def endpoints(cell: str) -> Iterator[tuple[str, str]]:
    """The methods and paths that a row names; ``…`` stands for what the path before it begins with."""
    method, path = "", ""
    for word, found in re.findall(r"\b(GET|PUT|POST|PATCH|DELETE)\b|`([/…][^`]*)`", cell):
        method = word or method
        if found:
            path = found.replace("…", path.rpartition("/")[0])
            yield method, re.sub(r"\{\w\}", "{}", path)


def test_every_endpoint_is_compared():
    """Each route and method has its row."""
    nobody = cast("Herder", object.__new__(type("Nobody", (), {"__getattr__": lambda *_: None})))
    own = [*herder_routes(nobody), *description_routes()]
    routes = [*own, *metrics_routes(str), *admin_routes(Levels(), nobody)]
    told = {each for row in rows("Endpoints") for each in endpoints(row[0])}

    assert set() == {(method, each.path) for each in routes for method in each.methods} - told


@pytest.mark.parametrize("heading", COMPARED)
def test_every_row_says_what_headrace_does(heading: str):
    """In words that the page's beginning explains, and what is different has its reason."""
    found = rows(heading)

    assert found
    for name, verdict, *why in found:
        assert re.match(r"(same|more|different|not yet)\b", verdict), name
        assert "same" == verdict or any(why), name
