"""The contract that holds the import rules."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from grimp import ImportGraph

BIN = Path(__file__).parents[2] / "bin"


def faults_of(*imports: tuple[str, str], inside: str = "shop", allowed: list[str]) -> list[str]:
    """What a table of *allowed* packages says of the *imports* of a made-up package ``r``."""
    graph = ImportGraph()
    for module in ("r", "r.shop", "r.shop.plain", "r.shop.low", "r.shop.low.a", "r.shop.high"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=f"r.shop.{importer}", imported=f"r.shop.{imported}")
    table: Any = runpy.run_path(str(BIN / "import_table.py"))["ImportTable"]
    options = {"inside": inside, "allowed": allowed}
    contract = table("rules", {"root_packages": ["r"]}, options)
    return contract.check(graph, verbose=False).metadata["faults"]


@pytest.mark.parametrize(
    ("importer", "imported", "faults"),
    [
        ("high.b", "low.a", []),
        ("low.a", "high.b", ["r.shop.low.a may not import r.shop.high.b"]),
        ("low.a", "plain", []),
        ("plain", "high.b", []),
    ],
)
def test_a_table_within_a_package_is_of_the_packages_in_it(
    importer: str, imported: str, faults: list[str]
):
    """The modules beside them may be imported by all, and import what they like."""
    found = faults_of(("high.b", "low.a"), (importer, imported), allowed=["low: ", "high: low"])

    assert faults == found


def test_a_package_without_a_line_is_a_fault():
    """A new one is given its place at once."""
    found = faults_of(("high.b", "low.a"), allowed=["high: low"])

    assert {
        "r.shop.low: the package low has no line in the table",
        "r.shop.low.a: the package low has no line in the table",
    } == set(found)


def test_without_a_place_the_table_is_of_all():
    """Of the root package's own packages and modules."""
    assert [] == faults_of(("low.a", "high.b"), inside="", allowed=["shop: "])
