"""What a worker of a group does in each turn, with a membership that the test plays."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.herder.coordination import HerderParts
from headrace.herder.distributed import Distributed
from headrace.herder.errors import (
    NO_LEADER,
    BadRequestError,
    ConflictError,
    ElsewhereError,
    NotFoundError,
    ServerError,
)
from headrace.herder.group import GroupSettings
from headrace.herder.group_protocol import (
    BEHIND,
    UNREACHABLE_OFFSET,
    Assignment,
    MemberFlag,
    MemberMetadata,
    MemberNotes,
    ProtocolVersion,
    decoded_assignment,
    decoded_metadata,
    encoded_assignment,
    encoded_metadata,
)
from headrace.herder.group_role import WorkerRole
from headrace.herder.internal_requests import InternalRequest
from headrace.herder.requests import RestartRequest
from headrace.herder.worker_herder import WorkerHerder
from headrace.kafka.membership import (
    DescribedMember,
    GroupMembership,
    GroupRole,
    Joined,
    JoinedMember,
)
from headrace.storage.protocols import Status, StoredConnector, TaskCount
from herder.stage import Judge, SlowStatuses, Stage, config
from waiting import until

ME = "me"


@pytest.fixture(autouse=True)
def turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker wakes the thread, so that it looks by itself what a test has given it."""
    monkeypatch.setattr("headrace.herder.distributed._LOOK_SECONDS", 0.02)


@dataclass
class Storage:
    """Topics that the test has written to; notes what is asked of it."""

    config_offset: int = 5
    asked: list[str] = field(default_factory=list[str])
    turns: int = 0
    fenced: set[str] = field(default_factory=set[str])
    failure: ConnectError | None = None
    unreadable: ConnectError | None = None
    changed: set[str] = field(default_factory=set[str])

    def take_lead(self) -> None:
        """Note it."""
        self.asked.append("take_lead")

    def refresh(self, seconds: float | None = None) -> None:
        """Note it."""
        self.asked.append("refresh")

    def take_arrived(self) -> None:
        """Count it: the topics are followed after each turn."""
        self.turns += 1
        if self.unreadable is not None:
            raise self.unreadable

    def follow_configs(self, on_record: Callable[[], object]) -> None:
        """The test writes none."""

    @property
    def descriptors(self) -> Sequence[int]:
        """There is no connection."""
        return ()

    def is_fenced(self, connector: str) -> bool:
        """As the test says."""
        return connector in self.fenced

    def start_number(self, connector: str) -> int:
        """No configuration is written again."""
        return 1

    def published_tasks(self, connector: str) -> int | None:
        """Some, but for what has another configuration by now."""
        return None if connector in self.changed else 1

    def flush(self) -> bool:
        """There is nothing."""
        return True


@dataclass
class Membership:
    """A membership in which the test says what is joined."""

    joins: list[Joined] = field(default_factory=list[Joined])
    waits: int = 0
    """How often the next join is not over when it is waited for."""
    member_id: str = ""
    requested: int = 0
    fails: Callable[[], bool] = lambda: False
    failed: int = 0
    members: Sequence[DescribedMember] = ()

    @property
    def needs_join(self) -> bool:
        """While the test has something to be joined."""
        return bool(self.joins)

    @property
    def is_removed(self) -> bool:
        """Whether it has no id."""
        return not self.member_id

    def join(self, seconds: float) -> Joined | None:
        """The next one."""
        if self.waits:
            self.waits -= 1
            return None
        joined = self.joins.pop(0)
        self.member_id = joined.member_id
        return joined

    def keep_alive(self) -> None:
        """Fail when the test says so."""
        if self.fails():
            self.failed += 1
            raise RetriableError("no broker answers")

    def request_join(self) -> None:
        """Note it."""
        self.requested += 1

    def holds(self) -> bool:
        """Always."""
        return True

    def described(self, seconds: float) -> Sequence[DescribedMember]:
        """What the test says."""
        return self.members

    def leave(self, reason: str, seconds: float) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Alone:
    """There is no other worker to ask."""

    def ask(self, url: str, request: InternalRequest) -> None:
        """No one answers."""
        raise ConflictError(f"It does not answer at {url}.")

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """No one asks."""

    def renew_key(self) -> None:
        """There is no need."""


@dataclass
class Storing(Alone):
    """A leader that stores the tasks that it is sent."""

    stage: Stage
    asked: int = 0
    sent: list[Any] = field(default_factory=list[Any])

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """Only what is signed."""
        if signature is None:
            raise BadRequestError("It is not signed.")

    def ask(self, url: str, request: InternalRequest) -> None:
        """Store them, or note what else it is."""
        if request.path == "/workers":
            self.sent.append(json.loads(request.body))
            return
        self.asked += 1
        _, _, name, _ = urlsplit(request.path).path.split("/")
        self.stage.configs.put_task_configs(name, json.loads(request.body))


@dataclass
class Member:
    """A worker, its membership and its storage."""

    stage: Stage
    membership: Membership = field(default_factory=Membership)
    storage: Storage = field(default_factory=Storage)
    coordination: Distributed | None = None
    role: WorkerRole | None = None
    generation: int = 0
    max_delay_ms: int = 0
    herder: WorkerHerder | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.java = Storing(self.stage)

    def refused(self) -> None:
        """Have the next join be refused."""
        answer = Assignment(
            error=2,
            leader="other",
            leader_url="http://other/",
            refusal="It is a test.",
            leader_understands_leaving=True,
        )
        self.membership.joins.append(Joined(1, ME, "sessioned", encoded_assignment(answer)))

    def joins(
        self,
        *assigned: str,
        revoked: Sequence[str] = (),
        named: str = ME,
        leader: str | None = None,
        version: ProtocolVersion = ProtocolVersion.SESSIONED,
        pieces: Mapping[str, Sequence[int]] | None = None,
        taken: Mapping[str, Sequence[int]] | None = None,
        error: int = 0,
        config_offset: int = 5,
    ) -> None:
        """Have the next join give it this; a *leader* that is given is a worker of Kafka Connect, which may give or take *pieces* alone."""
        self.generation += 1
        answer = Assignment(
            version=version,
            error=error,
            leader=leader or named,
            leader_url=f"http://{leader or ME}/",
            config_offset=config_offset,
            assigned=pieces or {name: [-1] for name in assigned},
            revoked=taken or {name: [-1] for name in revoked},
            leader_understands_leaving=leader is None,
        )
        joined = Joined(self.generation, named, version.protocol, encoded_assignment(answer))
        self.membership.joins.append(joined)

    def runs(self) -> list[str]:
        """The connectors that run here."""
        with self.stage.guard:
            return sorted(each.spec.name for each in self.stage.running)

    def _coordinate(self, parts: HerderParts) -> Distributed:
        settings = GroupSettings(
            group="g",
            url="http://me/",
            slots=4,
            max_delay_ms=self.max_delay_ms,
            session=1.0,
            **self.settings,
        )

        def member(role: GroupRole, wake: Callable[[], None]) -> GroupMembership:
            self.role = cast("WorkerRole", role)
            return cast("GroupMembership", self.membership)

        peers = self.java if "is_mixed" in self.settings else Alone()
        self.coordination = Distributed(parts, settings, lambda: self.storage, member, peers=peers)
        return self.coordination

    @contextmanager
    def started(self) -> Generator[Distributed]:
        """Its coordination, while it works."""
        self.stage.kafka.set()
        herder = self.herder = self.stage.new_herder(self._coordinate)
        herder.start()
        herder.ready()
        assert self.coordination is not None
        try:
            yield self.coordination
        finally:
            herder.close()


def stored(stage: Stage, *names: str) -> None:
    """Connectors that were created earlier."""
    for name in names:
        stage.configs.put_connector(StoredConnector(name=name, config=config(name=name)))


def test_an_earlier_leader_is_kept_from_writing_before_its_last_words_are_read() -> None:
    """Otherwise it could still write what this one never sees, and an open transaction of it would hide what follows."""
    member = Member(Stage())
    member.joins()
    with member.started() as group:
        until(lambda: group.is_open)

        assert ["take_lead", "refresh"] == member.storage.asked[:2]


def test_a_join_that_is_under_way_is_waited_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise whoever has waited for a member that leaves gets its work when it next looks."""
    monkeypatch.setattr("headrace.herder.distributed._LOOK_SECONDS", 600.0)
    member = Member(Stage())
    member.membership.waits = 3
    member.joins()
    with member.started() as group:
        until(lambda: group.is_open)


def test_a_new_leader_may_write_what_settling_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted change is fenced again, for which the leader stores a task count before it answers requests."""
    member = Member(Stage())
    member.joins()
    refused = list[str | None]()

    def recover(*_args: object, **_named: object) -> dict[str, ConnectError]:
        assert member.coordination is not None
        for ask in (
            member.coordination.require_may_change,
            partial(elsewhere, member.coordination),
        ):
            try:
                ask()
            except ConflictError as error:
                refused.append(str(error))
            else:
                refused.append(None)
        return {}

    def elsewhere(group: Distributed) -> None:
        with ThreadPoolExecutor(1) as request:
            request.submit(group.require_may_change).result()

    monkeypatch.setattr(member.stage.changes, "recover", recover)
    with member.started() as group:
        until(lambda: group.is_open)

        assert [None, NO_LEADER] == refused


def test_who_was_removed_leads_anew() -> None:
    """Another worker may have led meanwhile; what it has left is settled, and what ran here has ended before the join."""
    member = Member(Stage())
    stored(member.stage, "c")
    member.joins("c")
    with member.started():
        until(lambda: member.runs() == ["c"])
        first = member.stage.the_run()
        member.membership.member_id = ""
        until(first.asked.is_set)
        until(lambda: member.runs() == [])

        member.joins("c", named="again")
        until(lambda: member.runs() == ["c"])
        assert 2 == member.storage.asked.count("take_lead")


def test_a_membership_under_another_name_does_not_count_before_what_ran_has_ended() -> None:
    """The library joins again by itself; until then the old runs would go on beside those of another worker."""
    member = Member(Stage(holds=True, grace=5.0))
    stored(member.stage, "c")
    member.joins("c")
    with member.started() as group:
        until(lambda: member.runs() == ["c"])
        until(group.holds)
        run = member.stage.the_run()
        member.joins(named="again")
        until(run.asked.is_set)
        assert not group.holds()
        run.end()

        until(group.holds)
        assert not group.has("c")


def test_what_came_while_the_work_was_divided_is_divided_again() -> None:
    """A request to join that falls into a join is lost with it, and the config topic need not go on."""
    member = Member(Stage())
    member.joins()
    with member.started() as group:
        until(lambda: group.is_open and member.storage.turns > 1)
        before = member.membership.requested
        # The leader has divided what it knew, and nothing: this one came after.
        stored(member.stage, "late")
        member.joins()

        until(lambda: member.membership.requested > before)


def test_what_is_being_given_up_is_not_started_again() -> None:
    """By a request that comes while its tasks end: another worker is about to run it."""
    member = Member(Stage(holds=True, grace=5.0))
    stored(member.stage, "c")
    member.joins("c")
    with member.started() as group:
        until(lambda: member.runs() == ["c"])
        run = member.stage.the_run()
        member.joins(revoked=["c"])
        until(run.asked.is_set)
        changed = StoredConnector(name="c", config=config(name="c", other="1"))
        member.stage.configs.put_connector(changed)
        group.stored(changed, again=True)
        with pytest.raises(ConflictError):
            group.require_owner("c")
        run.end()

        until(lambda: not member.runs())
        turns = member.storage.turns
        until(lambda: member.storage.turns > turns + 2)
        assert [] == member.runs()


def test_a_connector_that_was_deleted_is_given_up_without_a_trace() -> None:
    """Statuses are written a moment later, and so perhaps after the leader has removed those of the connector."""
    member = Member(Stage())
    stored(member.stage, "c")
    member.joins("c")
    with member.started():
        until(lambda: set(member.stage.states("c").values()) == {"RUNNING"})
        late = member.stage.statuses.statuses("c")
        member.stage.configs.delete_connector("c")
        member.stage.statuses.forget("c")
        for task, status in late.items():
            member.stage.statuses.put("c", task, status)
        member.joins(revoked=["c"])

        until(lambda: member.runs() == [])
        until(lambda: [] == list(member.stage.statuses.connectors()))


def test_that_a_worker_leaves_is_said_until_a_join_has_taken_it() -> None:
    """A request to join that falls into a join is lost with it."""
    member = Member(Stage())
    member.joins()
    with member.started() as group:
        until(lambda: group.is_open)
        assert member.role is not None
        member.role.protocols()
        group.relinquish(ME, stay=True)
        before = member.membership.requested
        until(lambda: member.membership.requested > before + 1)

        member.role.protocols()
        turns = member.storage.turns
        until(lambda: member.storage.turns > turns + 1)
        after = member.membership.requested
        until(lambda: member.storage.turns > turns + 4)
        assert after == member.membership.requested


def test_what_is_given_up_is_not_kept_because_heartbeats_have_failed() -> None:
    """Said to be here, it would be given to no one, and run nowhere."""
    member = Member(Stage(holds=True, grace=5.0))
    stored(member.stage, "c")
    member.joins("c")
    with member.started() as group:
        until(lambda: member.runs() == ["c"])
        run = member.stage.the_run()
        member.membership.fails = run.asked.is_set
        member.joins(revoked=["c"])
        until(lambda: member.membership.failed > 0)
        run.end()
        until(lambda: not group.has("c"))
        member.membership.fails = lambda: False
        member.stage.holds = False
        member.joins("c")

        until(lambda: member.runs() == ["c"] and run is not member.stage.the_run())


def test_kafka_may_be_slow_when_a_worker_begins_to_lead() -> None:
    """It tries again, and is well."""
    statuses = SlowStatuses()
    member = Member(Stage(statuses=statuses))
    statuses.put("ghost", None, Status(state="RUNNING", worker_id="gone"))
    statuses.refusals = 1
    member.joins()
    with member.started() as group:
        until(lambda: member.membership.requested > 0)
        assert group.problem is None
        member.joins()
        until(lambda: group.is_open)

        assert group.problem is None
        assert [] == list(statuses.connectors())


def test_a_worker_is_not_well_while_its_topics_cannot_be_read() -> None:
    """What runs goes on, and nothing is changed: it does not know what there is. A broker that is slow is something else."""
    member = Member(Stage())
    stored(member.stage, "c")
    member.joins("c")
    with member.started() as group:
        until(lambda: group.is_open and member.runs() == ["c"])
        member.storage.unreadable = RetriableError("No broker answers.")
        turns = member.storage.turns
        until(lambda: member.storage.turns > turns + 1)
        assert group.problem is None

        member.storage.unreadable = TaskFailedError("The topic was made anew.")
        until(lambda: group.problem == "The topic was made anew.")
        with pytest.raises(
            ServerError, match=r"Nothing is changed while .* The topic was made anew"
        ):
            group.require_may_change()
        assert member.herder is not None
        with pytest.raises(ServerError, match=r"The topic was made anew"):
            # What is stopped now could not begin again.
            member.herder.restart(RestartRequest(name="c", include_tasks=True))
        assert member.runs() == ["c"]

        member.storage.unreadable = None
        until(lambda: group.problem is None)


def test_a_worker_of_kafka_connect_that_leads_gives_nothing() -> None:
    """It hands out what only its own kind can run; what it takes away is given up."""
    member = Member(Stage())
    stored(member.stage, "c", "d", "e")
    member.joins("c", "d")
    with member.started() as group:
        until(lambda: member.runs() == ["c", "d"])
        member.joins("e", revoked=["c"], leader="java")
        until(lambda: member.runs() == ["d"])
        assert "A worker of Kafka Connect leads the group 'g' (http://java/)" in str(group.problem)

        member.joins("c", "e")
        until(lambda: member.runs() == ["c", "d", "e"])
        assert group.problem is None


def test_what_another_worker_changes_is_seen_before_it_is_told_that_nothing_runs() -> None:
    """The leader has stopped, deleted or created it again; this worker need not have followed yet."""
    member = Member(Stage())
    stored(member.stage, "c", "d")
    member.joins("c", "d")
    with member.started() as group:
        until(lambda: member.runs() == ["c", "d"])
        first = member.stage.the_run()
        member.stage.configs.put_connector(
            StoredConnector(name="d", config=config(name="d"), target_state="STOPPED")
        )
        group.await_quiet("d")
        assert member.runs() == ["c"]
        member.stage.configs.delete_connector("c")
        group.await_quiet("c")
        assert [] == member.runs()

        stored(member.stage, "c")
        member.storage.config_offset += 1
        until(lambda: member.runs() == ["c"])
        assert first is not member.stage.the_run()


def test_tasks_are_not_stored_as_those_of_a_configuration_that_they_were_not_made_from() -> None:
    """Another worker has written it by now; the run is about to be ended for it."""
    stage = Stage()
    stored(stage, "c")
    member = Member(stage)
    member.joins("c")
    with member.started():
        until(lambda: len(stage.configs.task_configs("c")) == 2)
        # After the join it has looked once whether anything was changed meanwhile.
        until(lambda: member.storage.turns > 2)
        run = stage.the_run()
        changed = config(name="c", **{"tasks.max": "8"})
        stage.configs.put_connector(StoredConnector(name="c", config=changed))
        with pytest.raises(RetriableError, match="a configuration that it does not have any more"):
            run.report([{"task.class": "x:T"}])

        member.storage.config_offset += 1
        until(lambda: len(stage.configs.task_configs("c")) == 8)


def test_a_member_that_does_not_lead_asks_for_a_rebalance_when_connectors_come_or_go() -> None:
    """Until its next heartbeat it would not hear of the one that the leader asks for, and all would wait for it."""
    member = Member(Stage())
    stored(member.stage, "c")
    answer = Assignment(
        leader="other",
        leader_url="http://other/",
        config_offset=member.storage.config_offset,
        leader_understands_leaving=True,
    )
    member.membership.joins.append(Joined(1, ME, "sessioned", encoded_assignment(answer)))
    with member.started():
        until(lambda: member.storage.turns > 1)
        assert 0 == member.membership.requested

        stored(member.stage, "d")
        member.storage.config_offset += 1
        until(lambda: member.membership.requested)
        assert member.role is not None
        # It has said how far it has read.
        member.role.protocols()
        turns = member.storage.turns
        member.storage.config_offset += 1
        until(lambda: member.storage.turns > turns + 1)
        assert 1 == member.membership.requested

        member.stage.configs.delete_connector("c")
        member.storage.config_offset += 1
        until(lambda: member.membership.requested == 2)


def test_a_worker_with_other_topics_is_refused() -> None:
    """It would run connectors that it does not know, or read again what others have read."""
    member = Member(Stage())
    stored(member.stage, "c")
    with member.started() as group:
        until(lambda: member.role is not None)
        assert member.role is not None
        group.uses("config.storage.topic=ours")
        (_, own), *_ = member.role.protocols()
        notes = MemberNotes(flags=MemberFlag.UNDERSTANDS_LEAVING, slots=4)
        others = {
            "same": replace(notes, topics="config.storage.topic=ours"),
            "other": replace(notes, topics="config.storage.topic=theirs"),
            "older": notes,
        }
        said = {
            name: encoded_metadata(
                MemberMetadata(
                    url=f"http://{name}/", config_offset=9 if name == "other" else 5, notes=each
                )
            )
            for name, each in others.items()
        }
        members = [JoinedMember(each, said[each]) for each in said]
        given = member.role.assign(1, "sessioned", ME, [*members, JoinedMember(ME, own)])

        answers = {name: decoded_assignment(each) for name, each in given.items()}
        assert {"other": 2} == {name: each.error for name, each in answers.items() if each.error}
        assert (
            "config.storage.topic=theirs. The leader has config.storage.topic=ours"
            in answers["other"].refusal
        )
        assert ["c"] == [name for each in answers.values() for name in each.assigned]


def test_a_worker_that_is_refused_ends_after_a_session() -> None:
    """Its predecessor at the same URL may not be missed yet."""
    member = Member(Stage())
    member.refused()
    with member.started():
        until(lambda: member.membership.requested > 0)
        assert member.herder is not None
        assert member.herder.failure is None

        def has_ended() -> bool:
            member.refused()
            return member.herder is not None and member.herder.failure is not None

        until(has_ended)
        assert "does not take this worker. It is a test" in str(member.herder.failure)


def loses_a_worker(member: Member) -> None:
    """Have it divide the connectors while another worker has all of them, and again when that one is gone."""
    until(lambda: member.role is not None)
    assert member.role is not None
    (_, own), *_ = member.role.protocols()
    notes = MemberNotes(flags=MemberFlag.UNDERSTANDS_LEAVING, slots=400)
    other = encoded_metadata(MemberMetadata(url="http://other/", config_offset=5, notes=notes))
    first = member.role.assign(
        -1, "sessioned", ME, [JoinedMember(ME, own), JoinedMember("other", other)]
    )
    assert "c" in decoded_assignment(first["other"]).assigned
    member.role.assign(0, "sessioned", ME, [JoinedMember(ME, own)])


def test_connectors_say_what_they_wait_for() -> None:
    """For a worker that is gone, for a while."""
    member = Member(Stage(), max_delay_ms=60_000)
    stored(member.stage, "c")
    with member.started() as group:
        loses_a_worker(member)
        member.joins()
        until(lambda: group.is_open)
        until(lambda: None in member.stage.statuses.statuses("c"))
        shown = member.stage.statuses.statuses("c")[None]
        assert shown.state == "UNASSIGNED"
        assert "It waits for the worker at http://other/, which is gone, for up to 60 s" in str(
            shown.trace
        )


def test_a_connector_whose_tasks_turn_out_not_to_fit_waits_to_be_given_to_another_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has not failed: the leader knows only now how many there are."""
    monkeypatch.setattr(Judge, "is_polled", lambda *_: True)
    member = Member(Stage())
    stored(member.stage, "c")
    member.joins("c")
    with member.started() as group:
        until(lambda: member.runs() == ["c"])
        member.stage.configs.put_task_configs("c", [{"n": str(each)} for each in range(4)])
        member.storage.config_offset += 1
        group.require_tasks("c")

        member.stage.configs.put_task_configs("c", [{"n": str(each)} for each in range(5)])
        member.storage.config_offset += 1
        with pytest.raises(RetriableError, match=r"5 tasks .* this worker has 4 slots"):
            group.require_tasks("c")


def test_of_a_connector_that_was_deleted_while_it_waited_nothing_is_said() -> None:
    """Its status would outlive it."""
    member = Member(Stage(), max_delay_ms=60_000)
    stored(member.stage, "c")
    with member.started() as group:
        loses_a_worker(member)
        member.stage.configs.delete_connector("c")
        member.joins()
        until(lambda: group.is_open and member.storage.turns > 1)

        assert [] == list(member.stage.statuses.connectors())


def test_a_connector_that_fitted_nowhere_is_assigned_with_another_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How many tasks that has is known when it runs; by those of the former one it would wait for ever, whatever its user does."""
    monkeypatch.setattr(Judge, "is_polled", lambda _self, _name: True)
    member = Member(Stage())
    stored(member.stage, "c")
    member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}] * 8)
    with member.started() as group:
        until(lambda: member.role is not None)
        assert member.role is not None

        def divided() -> Mapping[str, Sequence[int]]:
            assert member.role is not None
            (_, own), *_ = member.role.protocols()
            told = member.role.assign(member.generation, "sessioned", ME, [JoinedMember(ME, own)])
            return decoded_assignment(told[ME]).assigned

        assert {} == divided()
        member.joins()
        until(lambda: group.is_open and member.storage.turns > 1)
        until(lambda: "lower tasks.max" in str(member.stage.statuses.statuses("c")[None].trace))
        before = member.membership.requested

        member.stage.configs.put_connector(
            StoredConnector(name="c", config=config(name="c", **{"tasks.max": "2"}))
        )
        member.storage.changed.add("c")
        member.storage.config_offset += 1
        until(lambda: member.membership.requested > before)
        assert ["c"] == list(divided())


def test_all_work_stops_before_an_eager_group_is_joined() -> None:
    """What it says then is that it has nothing, and the leader may give it to anyone."""
    member = Member(Stage(holds=True, grace=5.0))
    stored(member.stage, "c", "d")
    member.joins("c", "d", version=ProtocolVersion.DEFAULT)
    with member.started() as group:
        until(lambda: member.runs() == ["c", "d"])
        runs = [member.stage.the_run(name) for name in "cd"]
        member.joins("d", version=ProtocolVersion.DEFAULT)
        until(lambda: all(each.asked.is_set() for each in runs))
        assert 1 == len(member.membership.joins)
        for each in runs:
            each.end()

        until(lambda: member.runs() == ["d"])
        assert not group.has("c")
        member.stage.the_run("d").end()


def test_what_runs_when_a_group_becomes_eager_ends_before_anything_is_dealt() -> None:
    """A worker that knows no other protocol has joined: everyone has said what runs there, and work has gone on."""
    member = Member(Stage())
    stored(member.stage, "c")
    member.joins("c")
    with member.started():
        until(lambda: member.runs() == ["c"])
        assert member.role is not None
        said = dict(member.role.protocols())
        names = ["sessioned", "compatible", "default"]
        assert names == list(said)
        other = encoded_metadata(
            MemberMetadata(
                version=ProtocolVersion.DEFAULT,
                url="http://other/",
                config_offset=5,
                notes=MemberNotes(slots=4),
            )
        )
        joined = [JoinedMember(ME, said["default"]), JoinedMember("other", other)]
        told = member.role.assign(2, "default", ME, joined)
        assert [{}, {}] == [decoded_assignment(each).assigned for each in told.values()]
        role = member.role
        member.joins(version=ProtocolVersion.DEFAULT)
        until(lambda: not role.has_something)

        assert [] == member.runs()
        joined = [JoinedMember(ME, dict(member.role.protocols())["default"]), joined[1]]
        told = member.role.assign(3, "default", ME, joined)
        assert {"c": (-1, 0, 1)} == decoded_assignment(told[ME]).assigned


def test_a_worker_speaks_the_protocols_up_to_its_own() -> None:
    """As one of Kafka Connect, which prefers the last one."""
    member = Member(Stage(), settings={"protocol": ProtocolVersion.DEFAULT})
    member.joins(version=ProtocolVersion.DEFAULT)
    with member.started() as group:
        until(lambda: group.is_open)
        assert member.role is not None
        assert ["default"] == [name for name, _ in member.role.protocols()]


def mixed(**settings: object) -> Member:
    """A worker that may be in a group with workers of Kafka Connect."""
    # No one takes anything over when the test ends.
    return Member(Stage(), settings={"is_mixed": True, "hand_over": 0.5, **settings})


def test_what_a_leader_of_kafka_connect_gives_in_part_is_failed() -> None:
    """A connector with all its tasks runs; of others the status says why they do not, until they are taken away."""
    member = mixed()
    stored(member.stage, "c", "d", "e")
    for name in "cde":
        shown = {**config(name=name), "task.class": "x:T"}
        member.stage.configs.put_task_configs(name, [shown] * 2)
    member.joins(leader="java", pieces={"c": [-1, 0, 1], "d": [1], "e": [-1, 0]})
    with member.started() as group:
        until(lambda: set(member.stage.states("c").values()) == {"RUNNING"})
        until(lambda: len(member.stage.states("c")) == 3)
        assert group.problem is None
        assert 0 == member.java.asked
        until(lambda: member.stage.states("e") == {None: "FAILED", 0: "FAILED"})
        assert {1: "FAILED"} == member.stage.states("d")
        said = member.stage.statuses.statuses("d")[1].trace
        assert "Task 1 of connector d was assigned to this worker without the connector" in str(
            said
        )
        assert member.role is not None
        allocation = decoded_metadata(member.role.protocols()[0][1]).allocation
        assert allocation is not None
        assert {"c": (-1, 0, 1), "d": (1,), "e": (-1, 0)} == allocation.assigned

        member.joins(leader="java", pieces={"e": [1]}, taken={"c": [1], "d": [1]})
        until(lambda: member.runs() == ["e"])
        until(lambda: member.stage.states("c") == {None: "FAILED", 0: "FAILED", 1: "UNASSIGNED"})
        assert {1: "UNASSIGNED"} == member.stage.states("d")


def test_what_a_worker_of_kafka_connect_has_begun_with_is_not_shown_as_given_up() -> None:
    """A connector has got one more task, which that one is given: what this worker ran of it ends, and is all that it says anything of."""
    member = mixed()
    stored(member.stage, "c")
    member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}] * 2)
    member.joins(leader="java", pieces={"c": [-1, 0, 1]})
    with member.started():
        until(lambda: set(member.stage.states().values()) == {"RUNNING"})
        until(lambda: len(member.stage.states()) == 3)
        until(lambda: member.storage.turns > 2)
        member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}] * 3)
        began = Status(state="RUNNING", worker_id="java", generation=member.generation + 1)
        member.stage.statuses.put("c", 2, began)
        member.joins(leader="java", taken={"c": [-1, 0, 1]})
        until(lambda: member.runs() == [])

        ended = {None: "UNASSIGNED", 0: "UNASSIGNED", 1: "UNASSIGNED"}
        until(lambda: member.stage.states() == {**ended, 2: "RUNNING"})
        assert began == member.stage.statuses.statuses("c")[2]


def test_tasks_of_a_new_connector_begin_when_they_are_assigned() -> None:
    """Another worker may be given them."""
    member = mixed()
    stored(member.stage, "c")
    member.joins(leader="java", pieces={"c": [-1]})
    with member.started() as group:
        until(lambda: member.runs() == ["c"])
        until(lambda: len(member.stage.configs.task_configs("c")) == 2)
        with pytest.raises(RetriableError, match="waits until the leader of the group 'g' has"):
            group.require_tasks("c")
        run = member.stage.the_run()
        member.joins(leader="java", pieces={"c": [0, 1]})
        until(lambda: not member.membership.joins)
        until(lambda: not is_raised(group.require_tasks, "c"))
        assert not run.asked.is_set()


def is_raised(ask: Callable[[str], None], name: str) -> bool:
    """Whether *ask* raises."""
    try:
        ask(name)
    except RetriableError:
        return True
    return False


def test_without_workers_of_kafka_connect_no_part_of_a_connector_is_kept() -> None:
    """A leader of headrace gives whole ones; it is told that the rest is free."""
    member = mixed()
    stored(member.stage, "c", "d")
    for name in "cd":
        member.stage.configs.put_task_configs(name, [{"task.class": "x:T"}] * 2)
    member.joins(leader="java", pieces={"c": [-1, 0, 1], "d": [1]})
    with member.started():
        until(lambda: member.stage.states("d") == {1: "FAILED"})
        until(lambda: member.runs() == ["c"])
        run = member.stage.the_run()
        member.joins()
        until(lambda: member.stage.states("d") == {1: "UNASSIGNED"})
        assert member.role is not None
        allocation = decoded_metadata(member.role.protocols()[0][1]).allocation
        assert allocation is not None
        assert ["c"] == list(allocation.assigned)
        assert not run.asked.is_set()


def test_with_workers_of_kafka_connect_a_leader_divides_tasks_one_by_one() -> None:
    """Their members are given work as their own leader would; it is divided again when a connector has other tasks."""
    member = mixed()
    stored(member.stage, "c", "d")
    with member.started() as group:
        until(lambda: member.role is not None)
        assert member.role is not None
        java = encoded_metadata(MemberMetadata(url="http://java/", config_offset=5))
        own = member.role.protocols()[0][1]
        joined = [JoinedMember(ME, own), JoinedMember("java", java)]
        told = member.role.assign(-1, "sessioned", ME, joined)
        answers = {each: decoded_assignment(answer) for each, answer in told.items()}
        assert [{"c": (-1,)}, {"d": (-1,)}] == [answers[each].assigned for each in ("java", ME)]
        assert answers[ME].is_by_task

        member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}])
        member.membership.joins.append(Joined(1, ME, "sessioned", told[ME]))
        until(lambda: member.runs() == ["d"] and len(member.stage.configs.task_configs("d")) == 2)
        assert group.problem is None
        assert member.role.as_leader.must_divide_again()
        told = member.role.assign(2, "default", ME, joined)
        answers = {each: decoded_assignment(answer) for each, answer in told.items()}
        assert {"c": (-1, 0), "d": (1,)} == answers["java"].assigned
        assert {"d": (-1, 0)} == answers[ME].assigned


def test_tasks_of_workers_of_kafka_connect_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end them before they join again, and then do not say that they have them; a worker of headrace is asked."""
    member, said = mixed(), Future[None]()
    said.set_result(None)
    member.stage.grace = 0.0
    monkeypatch.setattr("headrace.herder.distributed.LEAVE_SECONDS", 0.0)
    stored(member.stage, "c", "d")
    member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}])

    def told(number: int, has: Mapping[str, Sequence[int]] | None) -> None:
        assert member.role is not None
        allocation = None if has is None else Assignment(assigned=has)
        java = MemberMetadata(url="http://java/", config_offset=5, allocation=allocation)
        joined = [
            JoinedMember(ME, member.role.protocols()[0][1]),
            JoinedMember("java", encoded_metadata(java)),
        ]
        member.role.assign(number, "sessioned", ME, joined)

    with member.started() as group, ThreadPoolExecutor(1) as asking:
        until(lambda: member.role is not None)
        told(-1, None)
        # It has been given a task, and is told to end it.
        member.stage.configs.put_task_configs("c", [])
        told(0, {"c": [-1, 0]})
        waits = asking.submit(group.await_end, "c", said, "Nothing was changed")
        assert not is_done(waits)
        told(1, {"c": [-1]})
        waits.result(10)

        told(2, {"d": [0]})
        with pytest.raises(ServerError) as raised:
            group.await_end("d", said, "Nothing was changed")
        assert str(raised.value).startswith(
            "Nothing was changed, but workers of Kafka Connect (http://java/) still have tasks of connector d after"
        )


def test_a_leader_fences_for_workers_of_kafka_connect() -> None:
    """Once for each set of tasks, and where one that is not there any more may have left a writer."""
    member = mixed()
    stored(member.stage, "c", "d")
    configs, asked = member.stage.configs, member.stage.coordinator.asked
    configs.put_task_configs("c", [{"task.class": "x:T"}] * 2)
    member.joins()
    with member.started() as group:
        until(lambda: group.is_open)
        assert member.herder is not None
        member.herder.put_task_count("c", None)
        assert ([], TaskCount(slots=2)) == (asked, configs.task_count("c"))
        configs.put_task_count("c", TaskCount(slots=3))
        member.herder.put_task_count("c", None)
        assert (["fence g-c-0 g-c-1 g-c-2"], TaskCount(slots=2)) == (
            asked,
            configs.task_count("c"),
        )
        member.storage.fenced.add("c")
        member.herder.put_task_count("c", None)
        assert 1 == len(asked)
        configs.put_connector(StoredConnector(name="d", config=config(name="d", broken="")))
        configs.put_task_count("d", TaskCount(slots=2))
        with pytest.raises(ServerError, match="zombie fencing for source connector d: The conf"):
            member.herder.put_task_count("d", None)
        assert TaskCount(slots=2) == configs.task_count("d")


def is_done(future: Future[None]) -> bool:
    """Whether it is, after a while in which it would be."""
    return not wait([future], timeout=0.3).not_done


def test_a_leader_of_kafka_connect_is_made_to_forget_who_leaves() -> None:
    """By one join with an offset that no one can have read, which is begun again if its answer is lost; then the work ends."""
    member = Member(Stage(holds=True, grace=5.0), settings={"is_mixed": True})
    stored(member.stage, "c")
    member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}])
    member.joins(leader="java", pieces={"c": [-1, 0]})
    said: list[int] = []
    with member.started() as group:
        until(lambda: member.runs() == ["c"])
        run = member.stage.the_run()

        def has_to_join() -> bool:
            return member.membership.requested > 0

        group.relinquish(ME)
        assert group.is_to_end
        with ThreadPoolExecutor(1) as closing:
            closing.submit(group.close)
            until(has_to_join)
            assert member.role is not None
            role = member.role

            def say() -> None:
                said.append(decoded_metadata(role.protocols()[0][1]).config_offset)

            say()
            say()
            assert not run.asked.is_set()
            member.joins(leader="java", error=BEHIND, config_offset=UNREACHABLE_OFFSET)
            until(run.asked.is_set)
            say()
            run.end()
    assert [UNREACHABLE_OFFSET, UNREACHABLE_OFFSET, 5] == said
    assert [] == member.membership.joins


@pytest.mark.parametrize("leader", [None, "java"])
def test_no_other_leader_is_told_to_forget(leader: str | None) -> None:
    """One of headrace understands leaving; with the setting, one of Kafka Connect learns of it when the worker is gone."""
    member = mixed(tells_java_leader=False)
    stored(member.stage, "c")
    member.stage.configs.put_task_configs("c", [{"task.class": "x:T"}] * 2)
    member.joins(leader=leader, pieces={"c": [-1, 0, 1]})
    with member.started():
        until(lambda: member.runs() == ["c"])
        assert member.role is not None
        role = member.role
    assert 5 == decoded_metadata(role.protocols()[0][1]).config_offset
    assert [] == member.runs()


@pytest.mark.parametrize(
    ("is_mixed", "version"),
    [
        (True, ProtocolVersion.SESSIONED),
        (True, ProtocolVersion.COMPATIBLE),
        (False, ProtocolVersion.COMPATIBLE),
    ],
)
def test_workers_of_kafka_connect_sign_nothing_in_older_protocols(
    version: ProtocolVersion, *, is_mixed: bool
) -> None:
    """Nor are they asked to; ours always sign."""
    member = mixed(is_mixed=is_mixed)
    member.joins(version=version)
    with member.started() as group:
        until(lambda: group.is_open)
        if is_mixed and version is ProtocolVersion.COMPATIBLE:
            group.verify(b"[]", None, None)
        else:
            with pytest.raises(BadRequestError):
                group.verify(b"[]", None, None)


def described(url: str, has: Sequence[str], *, gets: Sequence[str] = (), **notes: Any) -> Any:  # noqa: ANN401
    """A member as the brokers tell of it; with *notes* it is one of ours."""
    said = MemberMetadata(
        url=url,
        config_offset=5,
        allocation=Assignment(assigned={name: [-1, 0] for name in has}),
        notes=MemberNotes(**notes) if notes else None,
    )
    given = Assignment(assigned={name: [-1] for name in gets}, revoked={"gone": [-1], "half": [0]})
    return DescribedMember(url, encoded_metadata(said), encoded_assignment(given))


def test_the_brokers_tell_who_is_in_the_group_of_a_leader_of_kafka_connect() -> None:
    """It does not tell itself; and requests reach the workers that know them."""
    member = mixed()
    member.joins(leader="java")
    member.membership.members = [
        described(
            "http://two:1/", ["gone", "half"], slots=3, version="1", flags=MemberFlag.LEAVING
        ),
        described("http://java/", ["b"], gets=["a"]),
    ]
    with member.started() as group:
        until(lambda: group.is_open)
        java, two = group.workers()
        assert ("java", True, 0, "", ["a", "b"]) == (
            java.id,
            java.is_leader,
            java.slots,
            java.version,
            java.connectors,
        )
        assert ("two:1", "LEAVING", 3, ["half"]) == (two.id, two.state, two.slots, two.connectors)
        assert "UNREACHABLE" == group.known_workers(unreachable="http://two:1/")[1].state

        with pytest.raises(ElsewhereError) as sent:
            group.relinquish("two:1")
        assert "http://two:1/" == sent.value.url
        assert member.herder is not None
        member.herder.relinquish("two:1", stay=True, signed=True)
        member.herder.rejoin("two:1", signed=True)
        assert ["relinquish", "rejoin"] == [each["action"] for each in member.java.sent]
        with pytest.raises(ConflictError, match="java is one of Kafka Connect, which hands noth"):
            group.relinquish("java")
        with pytest.raises(NotFoundError, match="has no worker x:1, only java, two:1"):
            group.rejoin("x:1")
        member.membership.members = [DescribedMember("m", b"", b"")]
        with pytest.raises(ConflictError, match="'g' is dividing its work at this moment"):
            group.workers()


def test_a_worker_does_not_stay_without_work_under_a_leader_of_kafka_connect() -> None:
    """That one would give it some."""
    member = mixed()
    member.joins(leader="java")
    with member.started() as group:
        until(lambda: group.is_open)
        with pytest.raises(ConflictError, match="A worker of Kafka Connect leads the group 'g'"):
            group.relinquish(ME, stay=True)
