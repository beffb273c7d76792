"""Which slot reads which file: ``files.distribution``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from headrace.connect.task import Split
from headrace.connectors.files.progress import path_of, whole
from headrace.sources.distribution import OBJECT_HASH, PARTITION, owner
from headrace.sources.sharing import Piece, shared

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

SIZE: Final = "size"
_KINDS: Final = {"hash": OBJECT_HASH, "partition": PARTITION}


def distribution_problems(config: FilesConfig) -> Iterator[Problem]:
    """Settings that do not go with ``files.distribution``."""
    kind = config.distribution
    if kind == SIZE:
        return
    if config.split_bytes:
        told = f"With files.distribution={kind} one slot reads all of a file"
        yield "files.split.bytes", f"{told}. Remove it, or files.distribution."
    form = config.name_form
    told_by_name = form is not None and "partition" in form.variables
    if kind == "partition" and config.partition is None and not told_by_name:
        told = (
            "Nothing tells the Kafka partition of a file: set files.partition, or let names tell it"
        )
        yield "files.distribution", f"{told} ({{{{partition}}}} in files.name.template)."


def shares_of(
    kind: str, pieces: Sequence[Piece], slots: int, partition_of: Callable[[str], int | None]
) -> list[list[Split]]:
    """At most *slots* non-empty shares of *pieces*, as ``files.distribution`` *kind* wants them.

    *partition_of* tells the Kafka partition of a file by its path, and raises
    :class:`~headrace.connect.errors.TaskFailedError` where its name tells none.
    """
    if kind == SIZE:
        return shared(pieces, slots)

    def slot_of(path: str) -> int:
        partition = partition_of(path) if kind == "partition" else None
        slot = owner(_KINDS[kind], whole(path), partition, slots)
        assert slot is not None
        return slot

    named = ((path_of(each.split.partition), each.split) for each in pieces)
    return shared_by_name(named, slots, slot_of)


def shared_by_name(
    splits: Iterable[tuple[str, Split]], slots: int, slot_of: Callable[[str], int]
) -> list[list[Split]]:
    """At most *slots* non-empty shares of splits, each with its file's name, in the order of these names.

    *slot_of* is given the name, and its number decides: the same names share a slot as long as *slots* stays.
    """
    shares: list[list[Split]] = [[] for _ in range(slots)]
    # As stores list them: by the bytes of UTF-8, which is the order of code points.
    for name, split in sorted(splits, key=lambda each: each[0]):
        shares[slot_of(name)].append(split)
    return [share for share in shares if share]
