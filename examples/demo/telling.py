"""Puts what happens to the connectors into words."""

from __future__ import annotations

from screen import Screen

from headrace.observe import events
from headrace.observe.events import Event


class Teller:
    """Listens to the worker's events; told from any thread. Silent while all goes well."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._replanned: set[str] = set()
        self._waiting: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Say it, if a person would want to know."""
        match event:
            case events.Replanned(connector=name):
                self._replanned.add(name)
                self._screen.say(f"  {name}: the Spark job is lost. It will be planned again.")
            case events.MicroBatchStarted(connector=name, slots=slots):
                if name in self._replanned:
                    self._replanned.discard(name)
                    resume = "1 task resumes" if slots == 1 else f"{slots} tasks resume"
                    self._screen.say(
                        f"  {name}: open transactions are aborted; {resume} after the last commit.",
                        "",
                    )
            case events.Waiting(connector=name, reason=reason):
                if self._waiting.get(name) != reason:
                    self._screen.say(f"  {name} waits: {reason}")
                self._waiting[name] = reason
            case events.TaskFailed(connector=name, task=task, reason=reason):
                self._screen.say(f"  Task {task} of {name} has failed: {reason}")
            case _:
                pass
