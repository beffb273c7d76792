"""Telling a source which of its objects are done."""

from __future__ import annotations

import logging
from collections import deque
from typing import Generic

from headrace.connect.errors import RetriableError
from headrace.connect.partition import OffsetValue
from headrace.sources.keys import K
from headrace.sources.source import NativeSource

_log = logging.getLogger(__name__)


class Acknowledging(Generic[K]):
    """Collects objects whose ends are committed, for a *source* that wants to know.

    :meth:`note` may be called on any thread, :meth:`tell` on one.
    """

    def __init__(self, source: NativeSource[K]) -> None:
        self._source = source
        self._due = deque[tuple[K, OffsetValue]]()
        self.wanted = type(source).acknowledge is not NativeSource.acknowledge
        """Whether the source has anything to do then."""

    def note(self, key: K, version: OffsetValue) -> None:
        """The object of *key* is done, as it was in that *version*."""
        if self.wanted:
            self._due.append((key, version))

    def tell(self) -> dict[K, str | None]:
        """Tell the source what was noted; what it does not take now, it is told again. Returns what it took.

        An error that passes is logged; any other one is raised.
        """
        count = len(self._due)
        read = {
            key: version if isinstance(version, str) else None
            for key, version in (self._due[index] for index in range(count))
        }
        try:
            if read:
                self._source.acknowledge(read)
        except (OSError, RetriableError) as error:
            _log.warning(
                "%s does not take %d acknowledgements now, they are tried again: %s",
                self._source.name,
                len(read),
                error,
            )
            return {}
        for _ in range(count):
            self._due.popleft()
        return read
