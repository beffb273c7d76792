"""What is done to a file once all its records are committed, and where it goes when it is moved. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from headrace.connectors.files.selecting.addresses import Root, Selector, matched_by, root_of
from headrace.connectors.files.selecting.local_paths import local_key, local_selector
from headrace.stores.catalogue import KINDS

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig


@dataclass(frozen=True, kw_only=True)
class MoveTarget:
    """Names what is moved: as below the folders that *selectors* have in common, but below *folder*.

    So two files never get one name. Names are keys; a path on local disk is one without its first slash.
    """

    folder: str
    selectors: Sequence[Selector]
    recursive: bool

    def of(self, key: str) -> str:
        """The name of what is called *key*."""
        parts = key.split("/")
        begins = parts[: len(self._shared)] == self._shared
        rest = parts[len(self._shared) :] if begins else parts
        return self.folder + "/".join(rest or parts[-1:])

    def is_selected(self, key: str) -> bool:
        """Whether what is called *key* would be read."""
        return any(
            key == each.text.removesuffix("/") or each.selects(key, recursive=self.recursive)
            for each in self.selectors
        )

    def samples(self) -> Iterator[str]:
        """Names as the selectors may select them."""
        for each in self.selectors:
            if each.has_glob:
                deep = each.text.replace("**", "x")
                yield from map(matched_by, (deep, each.text.replace("**/", "")))
            else:
                yield from (each.text.removesuffix("/"), f"{each.text}x", f"{each.text}x/x")

    @cached_property
    def _shared(self) -> list[str]:
        """The folders that all selectors have in common."""
        folders = [each.prefix.split("/")[:-1] for each in self.selectors]
        same = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
        return [names[0] for names in same]


def move_target(config: FilesConfig) -> MoveTarget:
    """Where the files of *config*, which are on one disk or in one store, are moved to."""
    found = root_of(config.move_to)
    folder = found[1].text if found else local_key(config.move_to)
    if folder and not folder.endswith("/"):
        folder += "/"
    selectors = config.selectors or tuple(map(local_selector, config.path))
    return MoveTarget(folder=folder, selectors=selectors, recursive=config.recursive)


def tags_of(config: FilesConfig) -> dict[str, str]:
    """The tags that objects get."""
    return {name: text for name, _, text in (each.partition("=") for each in config.tags)}


def after_commit_problems(config: FilesConfig) -> Iterator[Problem]:
    """Rules across ``files.after.commit`` and other settings."""
    for key, action, is_set in (
        ("files.move.to", "move", bool(config.move_to)),
        ("files.tag", "tag", bool(config.tags)),
    ):
        if is_set and config.after_commit != action:
            yield (
                key,
                f"It has no effect without files.after.commit={action}. Set that, or remove it.",
            )
        if not is_set and config.after_commit == action:
            yield key, f"files.after.commit={action} needs it."
    if config.follow and config.after_commit != "keep":
        yield (
            "files.after.commit",
            "With files.follow=true no file is ever read to its end for good. Choose one of the two.",
        )
    yield from _of_marker(config)
    if config.after_commit == "tag":
        yield from _of_tags(config)
    if config.after_commit == "move" and config.move_to:
        yield from _of_move(config)


def _of_marker(config: FilesConfig) -> Iterator[Problem]:
    marker = config.marker
    if marker is None or not marker.per_folder or not config.takes_away:
        return
    # The times cannot tell: whoever copies a whole folder may write its marker first.
    told = (
        f"With files.after.commit={config.after_commit} the marker of a folder would stay behind its files, and say of "
        "the next ones that they are complete while they are being written. Give each file its own, such as "
        "{name}.done, or choose files.after.commit=keep."
    )
    yield "files.complete.marker", told


def _of_tags(config: FilesConfig) -> Iterator[Problem]:
    kind = KINDS.get(config.root.scheme) if config.root else None
    if config.root is None or (kind is not None and not kind.has_tags):
        what = (
            "Files on local disk" if config.root is None else f"Objects at {config.root.scheme}://"
        )
        yield "files.after.commit", f"{what} have no tags. Choose keep, delete or move."
    for each in config.tags:
        if not each.partition("=")[0] or "=" not in each:
            yield "files.tag", f"{each!r} must be a name, an equals sign, and a value."


def _of_move(config: FilesConfig) -> Iterator[Problem]:
    found = root_of(config.move_to)
    if (found and found[0]) != config.root:
        place = (
            "the folder must be on local disk, too" if config.root is None else _within(config.root)
        )
        yield "files.move.to", f"Files are moved within the place where they are: {place}."
        return
    target = move_target(config)
    selected = filter(target.is_selected, target.samples())
    if any(target.is_selected(target.of(each)) for each in selected):
        yield "files.move.to", f"{IN_SELECTION} Choose a place that files.path does not select."


IN_SELECTION = "What is moved there would be selected by files.path, and read again."


def _within(root: Root) -> str:
    return f"the address must begin with {root.address('')}"
