"""What may be wrong with a configuration for the place that its ``files.path`` speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.connectors.files.addresses import Root, root_of
from headrace.connectors.files.stores.catalogue import KINDS

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig


def place_problems(config: FilesConfig) -> Iterator[Problem]:
    """Rules across ``files.path`` and other settings, those of the store included."""
    found = list(map(root_of, config.path))
    roots = {each and each[0] for each in found}
    for root in sorted(filter(None, roots), key=str):
        yield from _of_root(root)
    if len(roots) > 1:
        yield "files.path", "Name files on local disk, or in one store, but not in several places."
    elif config.root is not None and config.root.scheme in KINDS:
        yield from _of_store(config, config.root)
        yield from _of_objects(config)


def _of_root(root: Root) -> Iterator[Problem]:
    if root.scheme not in KINDS:
        known = ", ".join(f"{scheme}://" for scheme in KINDS)
        told = f"{root.scheme}:// is no store that is known; known are {known}. Local paths have no scheme."
        yield "files.path", told
    elif not root.place:
        yield "files.path", f"Name what comes behind {root.scheme}://, such as a bucket."


def _of_store(config: FilesConfig, root: Root) -> Iterator[Problem]:
    kind = KINDS[root.scheme]
    for name in kind.in_address():
        if name in config.originals:
            yield name, f"files.path says it: {root.scheme}://…/…. Remove {name}."
    if not kind.installed:
        told = f"{root.scheme}:// needs {kind.library}, which is not installed: "
        yield "files.path", f"{told}pip install 'headrace[{kind.extra}]'"
    if root.place:
        yield from kind.problems(root.place, config.originals)


def _of_objects(config: FilesConfig) -> Iterator[Problem]:
    if config.follow:
        told = "Objects of a store are published whole and do not grow."
        yield "files.follow", f"{told} New objects are found without it."
    if config.split_bytes and config.compression != "none":
        told = (
            "In a store nothing is read of an object before it is planned, so that only the setting"
        )
        yield "files.split.bytes", f"{told} files.compression=none tells that it can be split."
