"""Commits whose offsets are copied to the worker's store, which is not the place that counts (KIP-618)."""

from __future__ import annotations

import logging
from typing import Protocol

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.slot.commits import Commits

_log = logging.getLogger(__name__)


class Copies(Protocol):
    """The driver's hands: it alone writes to the worker's store."""

    def first(self, offsets: Offsets) -> None:
        """Write *offsets* and return when they are stored; raises ``RetriableError`` when that failed."""
        ...

    def later(self, offsets: Offsets) -> None:
        """Hand *offsets* over, to be written soon; raises ``RetriableError`` when the driver did not hear.

        ``StaleTokenError`` when it does not listen to this slot any more.
        """
        ...


class CopiedCommits:
    """*commits* with copies: values after the commit, and removals, which must succeed, before it.

    A value that was copied before its commit would stay when that is aborted, and records be passed over. One
    that is removed from the place that counts first would be read from the other one again.
    """

    def __init__(self, commits: Commits, copies: Copies, *, connector: str) -> None:
        self._commits = commits
        self._copies = copies
        self._connector = connector
        self._left: dict[SourcePartition, SourceOffset] = {}
        self.update_must_succeed = commits.update_must_succeed
        self.in_transactions = commits.in_transactions

    def before_records(self, topic: str) -> None:
        """As without copies."""
        self._commits.before_records(topic)

    def settle(self) -> None:
        """As without copies."""
        self._commits.settle()

    def commit(self, offsets: Offsets) -> bool:
        """Make everything sent so far, and *offsets*, permanent; then have them copied."""
        self._remove([each for each, offset in offsets.items() if offset is None])
        is_done = self._commits.commit(offsets)
        self._copy({each: offset for each, offset in offsets.items() if offset is not None})
        return is_done

    def abort(self) -> bool:
        """As without copies."""
        return self._commits.abort()

    def _remove(self, partitions: list[SourcePartition]) -> None:
        if not partitions:
            return
        for each in partitions:
            self._left.pop(each, None)
        self._copies.first(dict.fromkeys(partitions))

    def _copy(self, values: dict[SourcePartition, SourceOffset]) -> None:
        self._left.update(values)
        if not self._left:
            return
        try:
            self._copies.later(self._left)
        except (RetriableError, StaleTokenError) as error:
            # It is committed, whatever became of the token since: hooks must hear of it.
            _log.warning(
                "Offsets of %s are committed, and not copied to the worker's: %s They are handed over with the next "
                "ones.",
                self._connector,
                error,
            )
        else:
            self._left = {}
