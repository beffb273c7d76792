"""What fake stores keep in memory; they honour conditions that emulators ignore."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from connectors.stores.s3_proxy import Answer, Proxy


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One version of an object."""

    data: bytes
    version: str
    modified: float
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


class FakeStore(Proxy):
    """A server of one bucket; subclasses speak as a store does. It has the bad moments of a :class:`Proxy`.

    *before* is called once, with the next request of *method* before it is answered: another writer's moment.
    """

    def __init__(self) -> None:
        super().__init__(port=0)
        self.kept = dict[str, Kept]()
        self._versions = itertools.count(1_700_000_000_000_001)
        self._before: tuple[str, Callable[[], object]] | None = None

    def put(self, key: str, data: bytes) -> Kept:
        """Write an object."""
        made = Kept(data=data, version=f"{next(self._versions)}", modified=time.time())
        self.kept[key] = made
        return made

    def tags(self, key: str) -> Mapping[str, str]:
        """An object's tags."""
        return self.kept[key].tags

    def before(self, method: str, action: Callable[[], object]) -> None:
        """See the class."""
        self._before = method, action

    def interrupt(self, method: str) -> None:
        """Let the other writer in, where there is one."""
        if self._before and self._before[0] == method:
            action, self._before = self._before[1], None
            action()

    def page(self, prefix: str, start: str, token: str, most: int) -> tuple[list[str], str]:
        """The keys of a page that begins at *start* or behind *token*, and the next page's token."""
        found = [each for each in self._sorted() if each.startswith(prefix) and each >= start]
        found = [each for each in found if not token or each > bytes.fromhex(token).decode()]
        more = found[most:]
        return found[:most], found[most - 1].encode().hex() if more else ""

    def _sorted(self) -> Iterator[str]:
        yield from sorted(self.kept, key=str.encode)


def ranged(data: bytes, asked: str | None, headers: Mapping[str, str]) -> Answer:
    """*data*, or the range of it that is *asked* for."""
    if asked is None:
        return Answer(200, dict(headers), data)
    first, _, last = asked.removeprefix("bytes=").partition("-")
    start, stop = int(first), int(last) + 1 if last else len(data)
    if start >= len(data):
        return Answer(416, {}, b"")
    part = data[start:stop]
    told = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
    return Answer(206, {**headers, "Content-Range": told}, part)
