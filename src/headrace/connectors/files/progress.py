"""What the store knows of each file: its entry, and the ranges that it was split into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from headrace.connect.partition import OffsetValue, Paired, SourceOffset, SourcePartition, of_names
from headrace.connectors.files.prefix_fingerprint import (
    CHECKED,
    PrefixFingerprint,
    digest_of,
    fingerprint_of,
)
from headrace.sources.offset_entry import QUARANTINED, is_closed

FILENAME = "filename"
BUCKET, OBJECT_KEY = "bucket", "objectKey"
"""What the partitions of Aiven's S3 source have instead."""
CLEANUP = "cleanup"
"""Under this the entry of an object that was read to its end says what became of what comes after that."""
PENDING = "pending"
GONE = "gone"
"""It was not there any more; should it come back as it was, there is something to do."""
MISSING = "missing"
"""When it was last noted that no complete listing shows an object that was read to its end, in milliseconds since 1970."""
MISSED = "missed"
"""For how many milliseconds runs had missed it then."""


_NO_RANGES: Final[Mapping[tuple[int, int], SourceOffset]] = {}


class Progress(NamedTuple):
    """How far one file has been read, in an entry for the whole and in ranges behind that.

    A tuple, since a plan makes millions of them: a frozen dataclass takes twice as long.
    """

    entry: SourceOffset | None = None
    ranges: Mapping[tuple[int, int], SourceOffset] = _NO_RANGES

    @property
    def is_new(self) -> bool:
        """Whether nothing is known of the file."""
        return self.entry is None and not self.ranges

    @property
    def anchor(self) -> int:
        """The byte behind all that the entry speaks of."""
        return number(self.entry, "anchor")

    @property
    def done(self) -> bool:
        """Whether the file was read to its end, and found unchanged then."""
        return self.entry is not None and bool(self.entry.get("done")) and not self.ranges

    def is_done_as(self, version: str) -> bool:
        """Whether that version of the file was read to its end; asked about each object of a store at each plan."""
        return self.entry is not None and self.entry.get("version") == version and self.done

    @property
    def quarantined(self) -> str | None:
        """Why the file, or a range of it, is in quarantine; ``None`` when it is not."""
        reasons = (each.get(QUARANTINED) for each in self._offsets())
        return next((str(each) for each in reasons if each), None)

    @property
    def finished(self) -> bool:
        """Whether nothing is half read: all there was has been read, or nothing, or what is left is in quarantine.

        No one knows how much was left of a file whose entry only counts, as people and other connectors write it.
        """
        if self.ranges:
            closed = all(is_closed(each) for each in self.ranges.values())
            return closed and self._is_covered
        if self.entry is None or self.quarantined is not None:
            return True
        return self.done or "anchor" not in self.entry

    @property
    def _is_covered(self) -> bool:
        """Whether the entry and the ranges leave no gap before the file's end."""
        at = self.anchor
        for (start, stop), offset in sorted(self.ranges.items()):
            if start > at:
                return False
            at = max(at, stop, number(offset, "anchor"))
        return at >= self.size

    @property
    def closed(self) -> bool:
        """Whether it was read to its end, and nothing is left to be done to it."""
        entry = self.entry or {}
        return self.done and not entry.get(QUARANTINED) and entry.get(CLEANUP) != PENDING

    @property
    def cleanup(self) -> OffsetValue:
        """What became of what comes after the commit, where it was read to its end."""
        return (self.entry or {}).get(CLEANUP) if self.done else None

    @property
    def restarted(self) -> bool:
        """Whether a person has set an entry that speaks of records and no place, beside ranges."""
        return bool(self.ranges) and self.entry is not None and "anchor" not in self.entry

    @property
    def size(self) -> int:
        """The file's size when it was last read."""
        return max((number(each, "size") for each in self._offsets()), default=0)

    @property
    def record_count(self) -> int:
        """How many records were sent of it."""
        return sum(number(each, "recordCount") for each in self._offsets())

    @property
    def furthest(self) -> int:
        """The byte behind all that was read of it, by any range."""
        return max((number(each, "anchor") for each in self._offsets()), default=0)

    @property
    def fingerprints(self) -> list[PrefixFingerprint]:
        """What the offsets say of the bytes before them."""
        return [
            fingerprint
            for each in self._offsets()
            if (fingerprint := fingerprint_of(each)) is not None
        ]

    @property
    def proven(self) -> bool:
        """Whether all offsets have a fingerprint; those from earlier versions and from people have none."""
        return len(self.fingerprints) == len(self._offsets())

    def whole_digest(self, *, packed: bool) -> int | None:
        """The checksum of all bytes of a file that was read to its end, or ``None`` where no one knows that.

        Of one that is not *packed* it is known up to where the fingerprint reaches.
        """
        if not self.done or self.entry is None:
            return None
        reaches = packed or number(self.entry, CHECKED) == self.size
        return digest_of(self.entry) if reaches else None

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
    """The whole number under *key*, or 0; JSON may have written it as one with a fraction of nothing."""
    value: OffsetValue = (offset or {}).get(key)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else 0


def as_shown(entry: SourceOffset) -> SourceOffset:
    """*entry* of an object that is not missing, or where that makes no difference."""
    return {key: value for key, value in entry.items() if key not in (MISSING, MISSED)}


def whole(path: str) -> SourcePartition:
    """The source partition of the file at *path*."""
    return SourcePartition({FILENAME: path})


def path_of(partition: SourcePartition) -> str:
    """What *partition* calls its file: a path, or the address of an object."""
    if OBJECT_KEY in partition:
        return f"s3://{partition[BUCKET]}/{partition[OBJECT_KEY]}"
    return str(partition[FILENAME])


def part(path: str, piece: tuple[int, int]) -> SourcePartition:
    """The source partition of the lines that begin in a range of the file at *path*."""
    return SourcePartition({FILENAME: path, "from": piece[0], "to": piece[1]})


def is_range(partition: SourcePartition) -> bool:
    """Whether *partition* is one range of a file, and not the whole."""
    return "from" in partition


class KnownFiles(Paired[str, Progress]):
    """What the store knows of each file, by its path.

    There may be millions, so each is looked up and made when it is asked for. *known* has the entries,
    *ranges* has those of files that were split.
    """

    def __init__(
        self,
        known: Mapping[SourcePartition, SourceOffset],
        ranges: Mapping[str, Mapping[tuple[int, int], SourceOffset]],
    ) -> None:
        self._wholes = of_names(known, {FILENAME})
        self._ranges = ranges

    def __getitem__(self, path: str) -> Progress:
        ranges = self._ranges.get(path, _NO_RANGES)
        try:
            entry = self._wholes[whole(path)]
        except KeyError:
            if not ranges:
                raise KeyError(path) from None
            entry = None
        return Progress(entry=entry, ranges=ranges)

    def __iter__(self) -> Iterator[str]:
        for partition in self._wholes:
            path = partition[FILENAME]
            if isinstance(path, str):
                yield path
        yield from self._ranges_alone()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def at_most(self) -> int:
        """How many files there are at most, and mostly exactly; the length costs a look at each."""
        return len(self._wholes) + sum(1 for _ in self._ranges_alone())

    def pairs(self) -> Iterator[tuple[str, Progress]]:
        """Each path with what is known of it; see :class:`~headrace.connect.partition.Paired`."""
        for partition, entry in self._wholes.items():
            path = partition[FILENAME]
            if isinstance(path, str):
                yield path, Progress(entry=entry, ranges=self._ranges.get(path, _NO_RANGES))
        for path in self._ranges_alone():
            yield path, Progress(ranges=self._ranges[path])

    def _ranges_alone(self) -> Iterator[str]:
        return (path for path in self._ranges if whole(path) not in self._wholes)


def by_file(known: Mapping[SourcePartition, SourceOffset]) -> KnownFiles:
    """What *known* says of each file; partitions of another form are not this connector's."""
    ranges = dict[str, dict[tuple[int, int], SourceOffset]]()
    for partition, offset in of_names(known, {FILENAME, "from", "to"}).items():
        path, start, stop = (partition[key] for key in (FILENAME, "from", "to"))
        if isinstance(path, str) and isinstance(start, int) and isinstance(stop, int):
            ranges.setdefault(path, {})[start, stop] = offset
    return KnownFiles(known, ranges)
