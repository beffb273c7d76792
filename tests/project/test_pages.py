"""Pages that are made from the code."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES: Mapping[str, Callable[[], str]] = runpy.run_path(str(ROOT / "bin" / "pages.py"))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str):
    """Who changes a setting or a metric runs ``bin/pages.py``."""
    assert PAGES[name]() == (ROOT / "docs" / name).read_text()


@pytest.mark.parametrize(
    "told",
    [
        "| `bootstrap.servers` | list | `localhost:9092` | high |",
        "| `files.path` | list | required | high |",
        "| `key.converter` | class | the worker's | low |",
        "| `aws.secret.access.key` | password | none |",
    ],
)
def test_the_reference_tells_type_default_and_importance(told: str):
    """One row for each setting, in the table of what it belongs to."""
    assert told in PAGES["reference.md"]()
