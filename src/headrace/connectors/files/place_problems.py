"""What may be wrong with a configuration for the place that its ``files.path`` speaks of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.connectors.files.selecting.addresses import Root, root_of
from headrace.stores.catalogue import KINDS

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
        return
    yield from _of_other_stores(config)
    if config.root is not None and config.root.scheme in KINDS:
        yield from _of_store(config, config.root)
        yield from _of_objects(config)
    elif config.root is None:
        yield from _of_disk(config)


def _of_root(root: Root) -> Iterator[Problem]:
    if root.scheme not in KINDS:
        known = ", ".join(f"{scheme}://" for scheme in KINDS)
        told = f"{root.scheme}:// is no store that is known; known are {known}. Local paths have no scheme."
        yield "files.path", told
    elif not root.place:
        yield "files.path", f"Name what comes behind {root.scheme}://, such as a bucket."
    elif not KINDS[root.scheme].place_names.fullmatch(root.place):
        # Not quoted: a password may have been written there.
        told = f"What stands behind {root.scheme}:// cannot be."
        yield "files.path", f"{told} {KINDS[root.scheme].place_rule}"


def _of_other_stores(config: FilesConfig) -> Iterator[Problem]:
    """Settings of stores that ``files.path`` does not speak of."""
    used = config.root.scheme if config.root else None
    if used is not None and used not in KINDS:
        return
    where = f"in {used}://" if used else "on local disk"
    for scheme, kind in KINDS.items():
        for name in (each.name for each in kind.config.settings()):
            if scheme != used and name in config.originals:
                told = f"It is a setting of {scheme}://, and files.path names files {where}."
                yield name, f"{told} Remove {name}."


def _of_store(config: FilesConfig, root: Root) -> Iterator[Problem]:
    kind = KINDS[root.scheme]
    for name in kind.in_address():
        if name in config.originals:
            yield name, f"files.path says it: {root.scheme}://…/…. Remove {name}."
    if missing := kind.missing:
        told = f"{root.scheme}:// needs {missing}, which is not installed: "
        yield "files.path", f"{told}in the clone: .venv/bin/pip install -e '.[{kind.extra}]'"
    if root.place:
        yield from kind.problems(root.place, config.originals)


def _of_disk(config: FilesConfig) -> Iterator[Problem]:
    start = config.start_after
    if start is not None and not _is_absolute(start):
        told = "Paths are compared with it as they are listed: absolute, without . and .. in them."
        yield "files.start.after", f"{told} Give such a one, as /data/in/a.jsonl is."


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and os.path.abspath(path) == (path.rstrip("/") or "/")  # noqa: PTH100 (as files are listed)


def _of_objects(config: FilesConfig) -> Iterator[Problem]:
    if config.start_after is not None and root_of(config.start_after):
        yield "files.start.after", "Give the key alone, without the store and the bucket before it."
    if config.follow:
        told = "Objects of a store are published whole and do not grow."
        yield "files.follow", f"{told} New objects are found without it."
    packs_itself = config.format in ("avro", "parquet")
    if config.split_bytes and config.compression != "none" and not packs_itself:
        told = (
            "In a store nothing is read of an object before it is planned, so that only the setting"
        )
        yield "files.split.bytes", f"{told} files.compression=none tells that it can be split."
