"""What plans do about files that were read to their end: they have them cleaned up, and write down what was done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.cleanup import Cleanup
from headrace.connectors.files.cleanups import Cleaned, Cleanups, Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import CLEANUP, PENDING, Progress, whole
from headrace.connectors.files.selection import Selection, Tell

_SETTING = "files.after.commit"
_CHANGED = "It is another file by now than the one whose records are committed, so that it is left as it is."
# With nothing to read, a plan that knows what was done is worth more than another one a moment later.
_WAIT_SECONDS = 1.0


class Cleaning:
    """One for each start of a connector. Used by its thread, in this order for each plan.

    Entries say what is left to do, and only committed ones count: so nothing is done to a file whose last record
    is not committed, and after a crash it is done again, which changes nothing where it had been done.
    """

    def __init__(
        self, config: FilesConfig, *, tell: Tell, cleanups: Cleanups | None = None
    ) -> None:
        self._config = config
        self._tell = tell
        self._cleanups = cleanups or Cleanups(lambda: Cleanup(config))
        self._named = set(map(os.path.abspath, config.path))
        self._known: Mapping[str, Progress] = {}
        self._offsets = dict[SourcePartition, SourceOffset | None]()
        self._held = set[str]()
        self._read_anew = set[str]()

    def decisions(
        self, selection: Selection, known: Mapping[str, Progress]
    ) -> Iterator[tuple[str, Decision]]:
        """What *selection* decides, but for what is or was being cleaned up: the next plan decides about that."""
        self._begin(known)
        # Another file may lie there by now, which is nothing to complain of.
        held = {path: Progress() for path in self._held & known.keys()}
        for path, decision in selection.decisions({**known, **held} if held else known):
            if path in self._held:
                continue
            if decision.pieces:
                self._read_anew.add(path)
            yield path, decision

    def offsets(self, *, idle: bool) -> Mapping[SourcePartition, SourceOffset | None]:
        """Begin with what is pending; the entries of what is done. *idle*: the plan has nothing else."""
        pending = {path: entry for path, entry in self._pending() if path not in self._read_anew}
        self._cleanups.ask(pending)
        if idle and not self._offsets:
            self._offsets = self._settled(self._cleanups.taken(wait_seconds=_WAIT_SECONDS))
        self._tell_failures()
        return self._offsets

    def waits(self) -> list[float]:
        """In how many seconds another plan would find something done, or to be tried again, if that is soon."""
        again = self._cleanups.again_after()
        return [] if again is None else [again]

    def stop(self) -> None:
        """Begin nothing any more; returns at once."""
        self._cleanups.stop()

    def _begin(self, known: Mapping[str, Progress]) -> None:
        self._known = known
        self._offsets = self._settled(self._cleanups.taken())
        self._held = {str(each["filename"]) for each in self._offsets} | self._cleanups.under_way()
        self._read_anew = set()

    def _pending(self) -> Iterator[tuple[str, SourceOffset]]:
        for path, progress in self._known.items():
            entry = progress.entry
            if entry is None or entry.get(CLEANUP) != PENDING or not progress.done:
                continue
            if whole(path) not in self._offsets:
                yield path, entry

    def _settled(self, done: Iterable[Cleaned]) -> dict[SourcePartition, SourceOffset | None]:
        """The entries of what is *done*, but for those that a person has changed since."""
        found = dict[SourcePartition, SourceOffset | None]()
        for each in done:
            if self._known.get(each.path, Progress()).entry != each.entry:
                continue
            if each.outcome is Outcome.CHANGED:
                self._tell(each.path, _CHANGED)
            found[whole(each.path)] = self._entry_after(each)
        return found

    def _entry_after(self, cleaned: Cleaned) -> SourceOffset | None:
        # What was removed here needs no entry, so that another file may come under its name; but of a file
        # that files.path names only its entry tells that it may be gone. What is gone otherwise may come
        # back, as on a mount that was away, and only its entry tells then that it was read.
        is_removed = self._config.after_commit in ("delete", "move")
        if is_removed and cleaned.outcome is Outcome.DONE and cleaned.path not in self._named:
            return None
        return {key: value for key, value in cleaned.entry.items() if key != CLEANUP}

    def _tell_failures(self) -> None:
        failures = self._cleanups.failures()
        if not failures:
            return
        path, worst = max(failures.items(), key=lambda each: each[1].attempts)
        noun = "file" if len(failures) == 1 else "files"
        self._tell(
            f"{_SETTING}={self._config.after_commit}",
            f"It failed for {len(failures)} {noun} and is tried again, less and less often; for {path} "
            f"{worst.attempts} times so far: {worst.reason}",
        )
