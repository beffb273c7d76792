"""What the store knows of each file: its entry, and the ranges that it was split into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connectors.files.proof import Proof, proof_of

FILENAME = "filename"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one file has been read, in an entry for the whole and in ranges behind that."""

    entry: SourceOffset | None = None
    ranges: Mapping[tuple[int, int], SourceOffset] = field(
        default_factory=dict[tuple[int, int], SourceOffset]
    )

    @property
    def anchor(self) -> int:
        """The byte behind all that the entry speaks of."""
        return number(self.entry, "anchor")

    @property
    def done(self) -> bool:
        """Whether the file was read to its end, and found unchanged then."""
        return bool((self.entry or {}).get("done")) and not self.ranges

    @property
    def finished(self) -> bool:
        """Whether nothing is half read: all there was has been read, or nothing."""
        if self.ranges:
            return all(offset.get("done") for offset in self.ranges.values())
        return self.entry is None or self.done

    @property
    def size(self) -> int:
        """The file's size when it was last read."""
        return max((number(each, "size") for each in self._offsets()), default=0)

    @property
    def furthest(self) -> int:
        """The byte behind all that was read of it, by any range."""
        return max((number(each, "anchor") for each in self._offsets()), default=0)

    @property
    def proofs(self) -> list[Proof]:
        """What the offsets say of the bytes before them."""
        return [proof for each in self._offsets() if (proof := proof_of(each)) is not None]

    @property
    def proven(self) -> bool:
        """Whether all offsets have a proof; those from earlier versions and from people have none."""
        return len(self.proofs) == len(self._offsets())

    @property
    def versions(self) -> set[str]:
        """The identities of the file that the offsets speak of."""
        return {str(each["version"]) for each in self._offsets() if each.get("version")}

    @property
    def formats(self) -> set[str]:
        """The formats under which the file was read."""
        return {str(each["format"]) for each in self._offsets() if each.get("format")}

    def _offsets(self) -> list[SourceOffset]:
        return [*self.ranges.values(), *([self.entry] if self.entry is not None else [])]


def number(offset: SourceOffset | None, key: str) -> int:
    """The integer under *key*, or 0."""
    value: OffsetValue = (offset or {}).get(key)
    return value if isinstance(value, int) else 0


def whole(path: str) -> SourcePartition:
    """The source partition of the file at *path*."""
    return SourcePartition({FILENAME: path})


def part(path: str, piece: tuple[int, int]) -> SourcePartition:
    """The source partition of the lines that begin in a range of the file at *path*."""
    return SourcePartition({FILENAME: path, "from": piece[0], "to": piece[1]})


def by_file(known: Mapping[SourcePartition, SourceOffset]) -> dict[str, Progress]:
    """What *known* says of each file; partitions of another form are not this connector's."""
    entries = dict[str, SourceOffset]()
    ranges = dict[str, dict[tuple[int, int], SourceOffset]]()
    for partition, offset in known.items():
        path, start, stop = (partition.get(key) for key in (FILENAME, "from", "to"))
        if not isinstance(path, str):
            continue
        if isinstance(start, int) and isinstance(stop, int):
            ranges.setdefault(path, {})[start, stop] = offset
        else:
            entries[path] = offset
    return {
        path: Progress(entry=entries.get(path), ranges=ranges.get(path, {}))
        for path in {**entries, **ranges}
    }
