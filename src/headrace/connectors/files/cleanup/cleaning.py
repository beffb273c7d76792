"""What plans do about files that were read to their end: they have them cleaned up, and write down what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.candidate import NOTHING, Decision
from headrace.connectors.files.cleanup.cleaner import Cleanup
from headrace.connectors.files.cleanup.cleanups import Cleaned, Cleaner, Cleanups, Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import (
    CLEANUP,
    GONE,
    PENDING,
    Progress,
    as_shown,
    path_of,
    whole,
)
from headrace.connectors.files.selecting.named import named_on_disk
from headrace.connectors.files.selecting.selection import EventListener
from headrace.connectors.files.tracking.asked import Asked

_SETTING = "files.after.commit"
_UNSELECTED = (
    "What {setting} says is not done to {count} {noun} that files.path does not select any more, such as {path}. To "
    "have it done, select them again."
)
_CHANGED = "It is another file by now than the one whose records are committed, so that it is left as it is."
# With nothing to read, a plan that knows what was done is worth more than another one a moment later.
_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What is the same for all plans: *action* is done to what is *named* or what *selects* holds for.

    *removes* says that this frees names; *ignores*, that another file under a name is left alone before it is.
    """

    action: str
    removes: bool
    ignores: bool
    named: AbstractSet[str]
    selects: Callable[[str], bool]
    tell: EventListener


class Cleaning:
    """One for each start of a connector. Used by its thread.

    Entries say what is left to do, and only committed ones count: so nothing is done to a file whose last record
    is not committed, and after a crash it is done again, which changes nothing where it had been done.
    """

    def __init__(
        self,
        config: FilesConfig,
        *,
        tell: EventListener,
        selects: Callable[[str], bool],
        cleaner: Callable[[FilesConfig], Cleaner] = Cleanup,
    ) -> None:
        self._cleanups = Cleanups(lambda: cleaner(config))
        self._rules = _Rules(
            action=config.after_commit,
            removes=config.takes_away,
            ignores=config.changed == "ignore",
            named=named_on_disk(config),
            selects=selects,
            tell=tell,
        )

    def planned(self, asked: Asked) -> PlannedCleaning:
        """What the next plan does, which asks for what is known by *asked*; takes what was done since the last one."""
        return PlannedCleaning(self._rules, self._cleanups, asked)

    def stop(self) -> None:
        """Begin nothing any more; returns at once."""
        self._cleanups.stop()


class PlannedCleaning:
    """Made by :meth:`Cleaning.planned` when a plan begins, and of no use behind it.

    From then on *asked* knows nothing of what is or was being cleaned up: the plan behind this one decides about
    what is there under these names.
    """

    def __init__(self, rules: _Rules, cleanups: Cleanups, asked: Asked) -> None:
        self._rules = rules
        self._cleanups = cleanups
        self._known: Mapping[str, Progress] = asked.known
        self._offsets = self._settled(cleanups.taken())
        self._held = {str(each["filename"]) for each in self._offsets} | cleanups.under_way()
        self._read_again = set[str]()
        self._returned = set[str]()
        # Another file may lie there by now, which is nothing to complain of.
        asked.hide(self._held)
        asked.cleaned(path_of(each) for each, entry in self._offsets.items() if entry is None)

    def decisions(self, decided: Iterable[tuple[str, Decision]]) -> Iterator[tuple[str, Decision]]:
        """What is *decided*, but for what is or was being cleaned up."""
        for path, decision in decided:
            if path in self._held:
                continue
            if decision.pieces or decision.waits or decision.offsets:
                self._read_again.add(path)
            elif decision == NOTHING and self._known.get(path, _NEW).cleanup == GONE:
                self._returned.add(path)
            yield path, decision

    def offsets(self, *, idle: bool) -> Mapping[SourcePartition, SourceOffset | None]:
        """Behind the decisions: begin with what is pending; the entries of what is done.

        *idle*: the plan has nothing else.
        """
        self._cleanups.ask(dict(self._selected()))
        if idle and not self._offsets:
            self._offsets = self._settled(self._cleanups.taken(wait_seconds=_WAIT_SECONDS))
        self._tell_failures()
        return self._offsets

    def waits(self) -> float | None:
        """In how many seconds another plan would find something done, or to be tried again; ``None``: not soon."""
        return self._cleanups.again_after()

    def _selected(self) -> Iterator[tuple[str, SourceOffset]]:
        """What is pending of all that ``files.path`` selects: it may have been changed since that was read."""
        others = list[str]()
        for path, entry in self._pending():
            if path in self._rules.named or self._rules.selects(path):
                yield path, entry
            else:
                others.append(path)
        if others:
            noun, count = _noun(len(others)), len(others)
            told = _UNSELECTED.format(setting=_SETTING, count=count, noun=noun, path=min(others))
            self._rules.tell("files.path", told)

    def _pending(self) -> Iterator[tuple[str, SourceOffset]]:
        for path, progress in self._known.items():
            note, entry = progress.cleanup, progress.entry
            is_due = note == PENDING or (note == GONE and path in self._returned)
            if entry is None or not is_due or path in self._read_again:
                continue
            if whole(path) not in self._offsets:
                yield path, entry

    def _settled(self, done: Iterable[Cleaned]) -> dict[SourcePartition, SourceOffset | None]:
        """The entries of what is *done*, but for those that a person has changed since."""
        found = dict[SourcePartition, SourceOffset | None]()
        for each in done:
            known = self._known.get(each.path, _NEW).entry
            if known is None or as_shown(known) != as_shown(each.entry):
                continue
            if each.outcome is Outcome.CHANGED:
                self._rules.tell(each.path, _CHANGED)
            found[whole(each.path)] = self._entry_after(each)
        return found

    def _entry_after(self, cleaned: Cleaned) -> SourceOffset | None:
        # What was removed here needs no entry, so that another file may come under its name. What is gone
        # otherwise may come back, as on a mount that was away, and only its entry tells then that it was
        # read, and what is left to do.
        if self._rules.removes and cleaned.outcome is Outcome.DONE:
            return None
        entry = {key: value for key, value in as_shown(cleaned.entry).items() if key != CLEANUP}
        is_gone = cleaned.outcome is Outcome.GONE or self._is_succeeded(cleaned)
        return {**entry, CLEANUP: GONE} if is_gone else entry

    def _is_succeeded(self, cleaned: Cleaned) -> bool:
        """Whether the next plan decides if it is another file that is there, or the same one, which grew."""
        if cleaned.outcome is not Outcome.CHANGED or self._rules.ignores:
            return False
        # Once is enough: where plan and action do not agree about what is there, no one would ever be done.
        return self._rules.removes and cleaned.entry.get(CLEANUP) == PENDING

    def _tell_failures(self) -> None:
        failures = self._cleanups.failures()
        if not failures:
            return
        path, worst = max(failures.items(), key=lambda each: each[1].attempts)
        self._rules.tell(
            f"{_SETTING}={self._rules.action}",
            f"It failed for {len(failures)} {_noun(len(failures))} and is tried again, less and less often; for {path} "
            f"{_times(worst.attempts)} so far: {worst.reason}",
        )


def _noun(count: int) -> str:
    return "file" if count == 1 else "files"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_NEW = Progress()
