"""Objects of packed members, one after the other: gzip, bzip2, xz."""

from __future__ import annotations

from headrace.formats.readable import Readable
from headrace.formats.unpacking import Member, cut_off


class MemberUnpacker:
    """An ``Unpacker`` of *raw*, whose parts are of *kind*; there is at least one."""

    def __init__(self, raw: Readable, kind: type[Member]) -> None:
        self._raw = raw
        self._kind = kind
        self._member: Member | None = None
        self._finished = False
        self._packed = b""
        self._unpacked = 0
        self.checked = 0
        """See :class:`~headrace.formats.streams.Unpacker`: each member ends with its checksum."""

    def unpack(self) -> bytes:
        """See :class:`~headrace.formats.streams.Unpacker`."""
        while True:
            member = self._member or self._next_member()
            if member is None:
                return b""
            out = self._feed(member)
            if out:
                return out

    def _next_member(self) -> Member | None:
        """The next member, with its first bytes read; ``None`` behind the last."""
        self._strip()
        while not self._packed:
            self._packed = self._read()
            if not self._packed:
                if self._finished:
                    return None
                raise cut_off(self._kind.noun)
            self._strip()
        return self._kind()

    def _strip(self) -> None:
        """Drop what may stand behind a member."""
        if self._finished:
            self._packed = (
                self._packed.lstrip(self._kind.padding) if self._kind.padding else self._packed
            )

    def _feed(self, member: Member) -> bytes:
        starved = False
        if not self._packed and member.hungry():
            self._packed = self._read()
            starved = not self._packed
        out, self._packed, ended = member.feed(self._packed)
        if starved and not out and not ended:
            raise cut_off(self._kind.noun)
        self._member = None if ended else member
        self._finished |= ended
        self._unpacked += len(out)
        if ended:
            self.checked = self._unpacked
        return out

    def _read(self) -> bytes:
        return self._raw.read(self._kind.input_bytes) or b""
