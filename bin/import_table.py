"""The import rules of the project as one table, checked by import-linter."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

EVERYTHING = "*"


class ImportTable(Contract):
    """*allowed*: a line ``package: what it may import`` for each package of the root package.

    *doors*: ``library: the only packages that import it``. *sparse*: ``package: the only libraries``
    that it may import in addition to the standard one. A package without a line in *allowed* is a fault.

    *inside* is a package of the root package: then the table is of the packages in it, and has no rule for
    the modules next to them.
    """

    allowed = fields.ListField(subfield=fields.StringField())
    doors = fields.ListField(subfield=fields.StringField(), default=[])
    sparse = fields.ListField(subfield=fields.StringField(), default=[])
    inside = fields.StringField(default="")

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001  import-linter's signature
        """Compare every direct import with the table."""
        root = self.session_options["root_packages"][0]
        if self.inside:
            root = f"{root}.{self.inside}"
        faults = sorted(set(self._faults(graph, root)))
        return ContractCheck(kept=not faults, metadata={"faults": faults})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that the table does not allow."""
        for fault in check.metadata["faults"]:
            output.print_error(fault)

    def _faults(self, graph: ImportGraph, root: str) -> Iterator[str]:
        # The fields are descriptors: on an object they are what the configuration holds.
        allowed, doors, sparse = (
            _lines(cast("list[str]", lines)) for lines in (self.allowed, self.doors, self.sparse)
        )
        modules = _plain_modules(graph, root) if self.inside else set[str]()
        for importer in sorted(graph.modules):
            within = importer.removeprefix(f"{root}.")
            package = within.partition(".")[0]
            if within == importer or package in modules:
                continue
            if package not in allowed:
                yield f"{importer}: the package {package} has no line in the table"
                continue
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                target = imported.removeprefix(f"{root}.")
                if imported == root or target in modules:
                    continue
                if target != imported:
                    if not _is_allowed(target, package, allowed[package]):
                        yield f"{importer} may not import {imported}"
                elif not _is_open(target, package, doors, sparse):
                    yield f"{importer} may not import the library {imported}"


def _plain_modules(graph: ImportGraph, root: str) -> set[str]:
    """The names of the modules in *root* that are no packages."""
    modules = graph.find_children(root)
    return {each.removeprefix(f"{root}.") for each in modules if not graph.find_children(each)}


def _lines(lines: list[str]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for line in lines:
        package, _, names = line.partition(":")
        table[package.strip()] = [name.strip() for name in names.split(",") if name.strip()]
    return table


def _is_allowed(target: str, package: str, allowed: list[str]) -> bool:
    within = [package, *allowed]
    return EVERYTHING in allowed or any(
        target == name or target.startswith(f"{name}.") for name in within
    )


def _is_open(
    library: str, package: str, doors: dict[str, list[str]], sparse: dict[str, list[str]]
) -> bool:
    name = library.partition(".")[0]
    if name in sys.stdlib_module_names:
        return True
    return package in doors.get(name, [package]) and name in sparse.get(package, [name])
