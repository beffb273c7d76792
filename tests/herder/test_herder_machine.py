"""Any order of requests, ends of runs and deaths of the process leaves a store that says what is so."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.herder.answers import TargetState
from headrace.herder.errors import (
    AlreadyExistsError,
    BadRequestError,
    NotFoundError,
    RequestError,
    ServerError,
)
from headrace.herder.requests import OffsetChange, RestartRequest
from headrace.herder.worker_herder import WorkerHerder
from herder.stage import Stage, config, request, sqlite_stage
from project.sampling import drawn
from waiting import until

NAMES = st.sampled_from("ab")
TARGETS = st.sampled_from(TargetState)
CHANGE = OffsetChange(partition={"a": 1}, offset={"b": 2})


class HerderMachine(RuleBasedStateMachine):
    """*wanted* is what each connector should come to, *broken* those whose run has failed."""

    @initialize()
    def begin(self) -> None:
        """An empty state file."""
        self.left = ExitStack()
        folder = self.left.enter_context(tempfile.TemporaryDirectory())
        self.file = Path(folder) / "s.db"
        self.wanted: dict[str, TargetState] = {}
        self.tasks: dict[str, int] = {}
        self.broken: set[str] = set()
        self._open()

    def teardown(self) -> None:
        """Everything settles once runs may end."""
        if hasattr(self, "process"):
            self._release()
            self._check_settled()
            self.process.close()
            self.left.close()

    @rule(name=NAMES, state=TARGETS, offsets=st.booleans())
    def create(self, name: str, state: TargetState, offsets: bool) -> None:  # noqa: FBT001
        """A name that is taken stays as it is."""
        asked = request(name, initial_state=state, initial_offsets=[CHANGE] if offsets else None)
        try:
            self.herder.create(asked)
        except AlreadyExistsError:
            assert name in self.wanted
        except ServerError:
            # One of the same name has been deleted, and its run has not ended.
            assert offsets
            assert self.stage.holds
            assert name not in self.wanted
        else:
            assert name not in self.wanted
            self.wanted[name], self.tasks[name] = state, 2
            self.broken.discard(name)

    @rule(name=NAMES, tasks=st.integers(1, 3))
    def put(self, name: str, tasks: int) -> None:
        """The target state stays."""
        self.herder.put_config(name, {**config(), "tasks.max": str(tasks)})
        self.wanted.setdefault(name, TargetState.RUNNING)
        self.tasks[name] = tasks
        self.broken.discard(name)

    @rule(name=NAMES, state=TARGETS)
    def want(self, name: str, state: TargetState) -> None:
        """Pause, resume, stop."""
        act = {
            TargetState.RUNNING: self.herder.resume,
            TargetState.PAUSED: self.herder.pause,
            TargetState.STOPPED: self.herder.stop,
        }[state]
        try:
            act(name)
        except NotFoundError:
            assert name not in self.wanted
        else:
            self.wanted[name] = state
            if state is TargetState.STOPPED:
                self.broken.discard(name)

    @rule(name=NAMES, flags=st.tuples(st.booleans(), st.booleans()))
    def restart(self, name: str, flags: tuple[bool, bool]) -> None:
        """Whatever failed is followed by a new run."""
        asked = RestartRequest(name=name, include_tasks=flags[0], only_failed=flags[1])
        try:
            self.herder.restart(asked)
        except NotFoundError:
            assert name not in self.wanted
        else:
            self.broken.discard(name)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        """Gone at once, though its run may take its time."""
        try:
            self.herder.delete(name)
        except NotFoundError:
            assert name not in self.wanted
            return
        except ServerError:
            assert self.stage.holds
        self.wanted.pop(name)
        self.broken.discard(name)

    @rule(name=NAMES)
    def alter(self, name: str) -> None:
        """Only of stopped ones; that nothing of it runs is checked by the fake itself."""
        try:
            self.herder.alter_offsets(name, [CHANGE])
        except NotFoundError:
            assert name not in self.wanted
        except BadRequestError:
            assert self.wanted[name] is not TargetState.STOPPED
        except ServerError:
            assert self.stage.holds
        else:
            assert self.wanted[name] is TargetState.STOPPED

    @rule(name=NAMES, fails=st.booleans())
    def end(self, name: str, fails: bool) -> None:  # noqa: FBT001
        """A run ends, in whatever way; failed ones stay so, unless they had been asked to end."""
        with self.stage.guard:
            runs = [each for each in self.stage.running if each.spec.name == name]
        for run in runs:
            was_asked = run.asked.is_set()
            if was_asked or fails:
                run.end(RuntimeError("it broke") if fails else None)
            if not was_asked and fails:
                self.broken.add(name)
        self.herder.health()

    @rule(holds=st.booleans())
    def hold(self, holds: bool) -> None:  # noqa: FBT001
        """From now on runs end at once, or only when the test says so."""
        if holds:
            self.stage.holds = True
        else:
            self._release()

    @rule()
    def die(self) -> None:
        """The process ends without a word, and another one opens the file."""
        self.process.close()
        self.broken.clear()
        self._open()

    @invariant()
    def store_and_answers_agree(self) -> None:
        """At every moment."""
        if not hasattr(self, "process"):
            return
        assert sorted(self.wanted) == list(self.herder.connectors())
        for name, target in self.wanted.items():
            stored = self.stage.configs.connector(name)
            assert stored is not None
            assert target == stored.target_state
            assert str(self.tasks[name]) == stored.config["tasks.max"]
            assert self.herder.status(name).name == name

    def _open(self) -> None:
        self.process = ExitStack()
        self.stage: Stage = self.process.enter_context(sqlite_stage(self.file))
        self.stage.grace = -14.98
        self.herder: WorkerHerder = self.process.enter_context(self.stage.herder())

    def _release(self) -> None:
        self.stage.holds = False
        with self.stage.guard:
            asked = [each for each in self.stage.running if each.asked.is_set()]
        for each in asked:
            each.end()

    def _check_settled(self) -> None:
        until(lambda: self._unsettled() == "", seconds=10)
        assert set(self.stage.statuses.connectors()) == set(self.wanted)

    def _unsettled(self) -> str:
        try:
            found = {each.spec.name for each in self.stage.running}
            states = {name: self.stage.states(name) for name in self.wanted}
        except RequestError as error:
            return str(error)
        should_run = {
            name
            for name, target in self.wanted.items()
            if target is TargetState.RUNNING and name not in self.broken
        }
        if found != should_run:
            return f"{found} run, and {should_run} should"
        for name, target in self.wanted.items():
            expected = "FAILED" if name in self.broken else target.value
            tasks = states[name].keys() - {None}
            if states[name].get(None) != expected:
                return f"{name} is {states[name]}, and should be {expected}"
            if target is TargetState.STOPPED and tasks:
                return f"{name} has tasks {tasks}"
            if name in should_run and tasks != set(range(self.tasks[name])):
                return f"{name} has tasks {tasks}"
        return ""


TestHerderMachine = pytest.mark.slow(HerderMachine.TestCase)
TestHerderMachine.settings = settings(max_examples=drawn(40), stateful_step_count=25, deadline=None)
