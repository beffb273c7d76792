"""Damage done to sound objects, and what must be true of whatever is read of them."""

from __future__ import annotations

import io
import random
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.formats.blocks import Span
from headrace.formats.chunk import Chunk, Resume
from headrace.formats.format import Format, ObjectInput, ReadLimits
from headrace.formats.object_reader import ObjectReader
from headrace.formats.streams import Compression
from headrace.formats.unreadable import UnreadableRecordError

LIMITS = ReadLimits(rows=5, chunk_bytes=4096, record_bytes=4096)
# No object of these tests has so many records, blank rows and bad rows together.
_MOST_STEPS = 2000
_PLACE = re.compile(r"byte|row group|footer|record|block|an object: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A sound object, written by another library.

    *ends* has for each record the byte up to which the object must be sound for it to be read; for packed
    ones that is of what they unpack to, and *unpack* gives of their first bytes what another library does.
    Nothing is sure where it does not end with the bytes from *fragile* on, such as a footer's.
    """

    form: Format
    content: bytes
    ends: Sequence[int]
    compression: Compression = Compression.NONE
    unpack: Callable[[bytes], bytes] | None = None
    fragile: int | None = None

    def sure(self, content: bytes) -> int:
        """How many records are untouched by what makes *content* another one."""
        if self.fragile is not None and not content.endswith(self.content[self.fragile :]):
            return 0
        damaged = first_difference(self.content, content)
        sound = damaged if self.unpack is None else len(self.unpack(self.content[:damaged]))
        return bisect_right(self.ends, sound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of an object: records and bad ones in their places, and the error that ended it, if one did.

    What several bad ones have in common is in each of their places.
    """

    pieces: list[object] = field(default_factory=list[object])
    failure: Exception | None = None
    anchor: int = 0
    cut_short: bool = False

    @property
    def records(self) -> list[object]:
        """The good ones."""
        return [each for each in self.pieces if not isinstance(each, UnreadableRecordError)]

    @property
    def letters(self) -> int:
        """How many dead letters the bad ones make."""
        bad = (each for each in self.pieces if isinstance(each, UnreadableRecordError))
        return len({id(each) for each in bad})


def seen_in(whole: Whole, content: bytes, *, limit: int | None = None) -> Seen:
    """Read *content* as *whole* is read, in a bounded number of steps; *limit* is its planned length.

    Fails for any error but the typed ones, for one without a place, for one that is gone when it is asked
    again, for a chunk that is larger than it may be, and for a place that does not count everything.
    """
    source = ObjectInput(
        native_key="an object",
        raw=io.BytesIO(content),  # pyright: ignore[reportArgumentType]
        compression=whole.compression,
    )
    try:
        reader = whole.form.reader(
            source, span=Span(limit=limit), resume=Resume(), limits=LIMITS, constants={}
        )
    except (RecordError, TaskFailedError) as error:
        return Seen(failure=_checked(error))
    pieces = list[object]()
    failure = _read_all(reader, pieces)
    if failure is not None:
        return Seen(pieces=pieces, failure=_lasting(reader, failure))
    assert reader.next_chunk() is None, "the end is the end"
    assert len(pieces) == reader.place.record_count, "everything counts"
    assert not reader.place.skip, "the end is behind a whole block"
    return Seen(pieces=pieces, anchor=reader.place.anchor, cut_short=reader.cut_short)


def _read_all(reader: ObjectReader, pieces: list[object]) -> Exception | None:
    for _ in range(_MOST_STEPS):
        try:
            chunk = reader.next_chunk()
        except UnreadableRecordError as error:
            pieces += [_checked_one(error, len(pieces))] * records_of(error)
        except (RecordError, TaskFailedError) as error:
            return _checked(error)
        else:
            if chunk is None:
                return None
            _check_chunk(chunk, len(pieces))
            pieces += chunk.values.to_pylist()
    raise AssertionError("it does not end")


def _check_chunk(chunk: Chunk, before: int) -> None:
    assert 0 < len(chunk) <= LIMITS.rows
    assert chunk.values.nbytes <= 8 * LIMITS.chunk_bytes
    assert [*range(before + 1, before + 1 + len(chunk))] == chunk.counts.tolist()
    chunk.values.validate(full=True)


def _lasting(reader: ObjectReader, failure: Exception) -> Exception:
    """*failure*, which nothing follows."""
    for _ in range(3):
        with pytest.raises((RecordError, TaskFailedError)) as caught:
            reader.next_chunk()
        assert not isinstance(caught.value, UnreadableRecordError), f"follows {failure}"
    reader.close()
    return failure


def _checked_one(error: UnreadableRecordError, before: int) -> Exception:
    assert error.record.behind.record_count == before + records_of(error)
    return _checked(error)


def records_of(error: UnreadableRecordError) -> int:
    """How many records *error* is about."""
    return int(str(error.record.reference.get("records", 1)))


def _checked(error: Exception) -> Exception:
    told = str(error)
    assert "an object" in told, told
    assert _PLACE.search(told), told
    return error


# ------------------------------------------------------------------ damage


def cut(content: bytes, chance: random.Random) -> bytes:
    """Its first bytes."""
    return content[: chance.randrange(len(content))]


def flip(content: bytes, chance: random.Random) -> bytes:
    """One to four bits are others."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def overwrite(content: bytes, chance: random.Random) -> bytes:
    """Other bytes in the place of some."""
    start, count = chance.randrange(len(content)), chance.randint(1, 40)
    return content[:start] + chance.randbytes(count) + content[start + count :]


def insert(content: bytes, chance: random.Random) -> bytes:
    """Bytes that do not belong there."""
    start = chance.randrange(len(content) + 1)
    return content[:start] + chance.randbytes(chance.randint(1, 40)) + content[start:]


def leave_out(content: bytes, chance: random.Random) -> bytes:
    """Some bytes are missing."""
    start = chance.randrange(len(content))
    return content[:start] + content[start + chance.randint(1, 40) :]


def repeat(content: bytes, chance: random.Random) -> bytes:
    """Some bytes are there twice."""
    start = chance.randrange(len(content))
    stop = start + chance.randint(1, 200)
    return content[:stop] + content[start:]


def zero(content: bytes, chance: random.Random) -> bytes:
    """A hole, as file systems leave it after a crash."""
    start = chance.randrange(len(content))
    return content[:start] + bytes(min(200, len(content) - start)) + content[start + 200 :]


def scramble(content: bytes, chance: random.Random) -> bytes:
    """Nothing but its first bytes is left of it."""
    return content[: chance.randrange(12)] + chance.randbytes(chance.randint(0, 200))


DAMAGES = [cut, flip, overwrite, insert, leave_out, repeat, zero, scramble]


def first_difference(one: bytes, other: bytes) -> int:
    """The first byte that is not the same."""
    for place, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            return place
    return min(len(one), len(other))


def check_damaged(whole: Whole, sound: Seen, content: bytes) -> Seen:
    """Assert that the records before the damage are right, and that what follows is told; what came of it."""
    found = seen_in(whole, content)
    sure = whole.sure(content)
    right = min(sure, len(found.pieces))
    assert sound.pieces[:right] == found.pieces[:right], (
        "records before the damage are as they were"
    )
    if right < sure:
        assert found.failure is not None, "records before the damage are missing, and no one tells"
        # What unpacks a piece of packed bytes gives all of it or nothing.
        assert whole.unpack is not None or whole.fragile is not None
    return found


def ends_of(whole: Whole) -> list[int]:
    """For formats of which a record is sound as soon as the bytes up to the next place behind it are."""
    plain = replace(whole, compression=Compression.NONE) if whole.unpack else whole
    content = whole.unpack(whole.content) if whole.unpack else whole.content
    reader = plain.form.reader(
        ObjectInput(native_key="an object", raw=io.BytesIO(content)),  # pyright: ignore[reportArgumentType]
        span=Span(),
        resume=Resume(),
        limits=LIMITS,
        constants={},
    )
    ends, waiting = list[int](), 0
    while (chunk := reader.next_chunk()) is not None:
        for anchor, skip in zip(chunk.anchors.tolist(), chunk.skips.tolist(), strict=True):
            waiting += 1
            if not skip:
                ends += [anchor] * waiting
                waiting = 0
    return ends
