"""What plans do about files that were read to their end: they have them cleaned up, and write down what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.cleanup.cleaner import Cleanup
from headrace.connectors.files.cleanup.cleanups import Cleaned, Cleanups, Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import CLEANUP, GONE, PENDING, Progress, whole
from headrace.connectors.files.selecting.selection import Decides, Tell
from headrace.connectors.files.tracking.asked import Asked

_SETTING = "files.after.commit"
_UNSELECTED = (
    "What {setting} says is not done to {count} {noun} that files.path does not select any more, such as {path}. To "
    "have it done, select them again."
)
_CHANGED = "It is another file by now than the one whose records are committed, so that it is left as it is."
# With nothing to read, a plan that knows what was done is worth more than another one a moment later.
_WAIT_SECONDS = 1.0


class Cleaning:
    """One for each start of a connector. Used by its thread, in this order for each plan.

    Entries say what is left to do, and only committed ones count: so nothing is done to a file whose last record
    is not committed, and after a crash it is done again, which changes nothing where it had been done.
    """

    def __init__(
        self,
        config: FilesConfig,
        *,
        tell: Tell,
        selects: Callable[[str], bool],
        cleanups: Cleanups | None = None,
    ) -> None:
        self._config = config
        self._selects = selects
        self._tell = tell
        self._cleanups = cleanups or Cleanups(lambda: Cleanup(config))
        self._named = set(map(os.path.abspath, config.path))
        self._known: Mapping[str, Progress] = {}
        self._offsets = dict[SourcePartition, SourceOffset | None]()
        self._held = set[str]()
        self._read_anew = set[str]()
        self._returned = set[str]()

    def decisions(self, selection: Decides, asked: Asked) -> Iterator[tuple[str, Decision]]:
        """What *selection* decides, but for what is or was being cleaned up: the next plan decides about that."""
        self._begin(asked.known)
        # Another file may lie there by now, which is nothing to complain of.
        asked.hide(self._held)
        for path, decision in selection.decisions(asked):
            if path in self._held:
                continue
            if decision.pieces:
                self._read_anew.add(path)
            elif decision == _NOTHING and _note(self._known.get(path)) == GONE:
                self._returned.add(path)
            yield path, decision

    def offsets(self, *, idle: bool) -> Mapping[SourcePartition, SourceOffset | None]:
        """Begin with what is pending; the entries of what is done. *idle*: the plan has nothing else."""
        self._cleanups.ask(dict(self._selected()))
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
        self._returned = set()

    def _selected(self) -> Iterator[tuple[str, SourceOffset]]:
        """What is pending of all that ``files.path`` selects: it may have been changed since that was read."""
        others = list[str]()
        for path, entry in self._pending():
            if path in self._named or self._selects(path):
                yield path, entry
            else:
                others.append(path)
        if others:
            noun, count = _noun(len(others)), len(others)
            told = _UNSELECTED.format(setting=_SETTING, count=count, noun=noun, path=min(others))
            self._tell("files.path", told)

    def _pending(self) -> Iterator[tuple[str, SourceOffset]]:
        for path, progress in self._known.items():
            note, entry = _note(progress), progress.entry
            is_due = note == PENDING or (note == GONE and path in self._returned)
            if entry is None or not is_due or path in self._read_anew:
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
        # back, as on a mount that was away, and only its entry tells then that it was read, and what is left
        # to do.
        is_removed = self._config.after_commit in ("delete", "move")
        if is_removed and cleaned.outcome is Outcome.DONE and cleaned.path not in self._named:
            return None
        entry = {key: value for key, value in cleaned.entry.items() if key != CLEANUP}
        return {**entry, CLEANUP: GONE} if cleaned.outcome is Outcome.GONE else entry

    def _tell_failures(self) -> None:
        failures = self._cleanups.failures()
        if not failures:
            return
        path, worst = max(failures.items(), key=lambda each: each[1].attempts)
        self._tell(
            f"{_SETTING}={self._config.after_commit}",
            f"It failed for {len(failures)} {_noun(len(failures))} and is tried again, less and less often; for {path} "
            f"{worst.attempts} times so far: {worst.reason}",
        )


def _note(progress: Progress | None) -> OffsetValue:
    """What the entry of a file that was read to its end says about what is left to do to it."""
    return (progress.entry or {}).get(CLEANUP) if progress and progress.done else None


def _noun(count: int) -> str:
    return "file" if count == 1 else "files"


_NOTHING = Decision()
