"""What a standalone herder answers and keeps, with connectors that only say that they run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from doubles.puppets import PLANNED
from headrace import __version__
from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.config.providers import Resolution
from headrace.connect.errors import RetriableError
from headrace.connect.group_offsets import OffsetGroup
from headrace.herder.answers import Health, State, TargetState, TaskId, WorkerState
from headrace.herder.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    RequestError,
    ServerError,
)
from headrace.herder.requests import CreateRequest, OffsetChange, RestartRequest
from headrace.observe.events import ConnectorFailed
from headrace.offsets.connector_stores import NamedConnector
from headrace.runtime.services import RunSpec
from headrace.storage.memory import MemoryStatusStore
from headrace.storage.protocols import (
    Status,
    StoredConnector,
)
from herder.stage import Judge, SlowStatuses, Stage, config, request
from offsets.own_topics import OWN
from waiting import until

ALL_RUN = {None: "RUNNING", 0: "RUNNING", 1: "RUNNING"}
CHANGE = OffsetChange(partition={"a": 1}, offset={"b": 2})


def test_a_created_connector_runs() -> None:
    """The answer holds it as it was submitted, with its name; tasks come a moment later."""
    stage = Stage()
    with stage.herder() as herder:
        created = herder.create(request())
        until(lambda: stage.states() == ALL_RUN)

        assert created.is_new
        assert config(name="c") == created.info.config
        assert ("source", []) == (created.info.type, list(created.info.tasks))
        assert [TaskId(connector="c", task=n) for n in (0, 1)] == list(herder.info("c").tasks)
        assert {**config(name="c"), "task.class": "x:T"} == herder.tasks("c")[1].config
        until(lambda: stage.states() == ALL_RUN)


@pytest.mark.parametrize("state", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_connector_may_be_created_without_running(state: TargetState) -> None:
    """In the state that was asked for, without tasks (KIP-980)."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request(initial_state=state))

        status = herder.status("c")
        assert (State(state), []) == (status.connector.state, list(status.tasks))
        assert [] == stage.running


def test_a_name_is_taken_once() -> None:
    """The second one is told, and the first one is left alone."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        run = stage.the_run()
        with pytest.raises(AlreadyExistsError, match=r"^Connector c already exists$"):
            herder.create(request())

        assert run is stage.the_run()
        assert not run.asked.is_set()


def test_what_is_wrong_is_reported_and_not_stored() -> None:
    """In Kafka Connect's form."""
    with Stage().herder() as herder:
        with pytest.raises(BadRequestError) as caught:
            herder.put_config("c", config(wrong="yes"))
        with pytest.raises(BadRequestError, match=r"\(d\) doesn't match .* in the URL \(c\)$"):
            herder.put_config("c", config(name="d"))

        assert (
            "Connector configuration is invalid and contains the following 1 error(s):\nit is wrong\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`"
        ) == str(caught.value)
        assert [] == herder.connectors()


def test_a_paused_connector_keeps_its_tasks_and_a_stopped_one_has_none() -> None:
    """Resumed, it runs again."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)
        herder.pause("c")
        until(lambda: stage.states() == {None: "PAUSED", 0: "PAUSED", 1: "PAUSED"})
        assert len(herder.tasks("c")) == 2
        herder.resume("c")
        until(lambda: stage.states() == ALL_RUN)
        herder.stop("c")
        until(lambda: stage.states() == {None: "STOPPED"})
        assert [] == list(herder.tasks("c"))
        herder.pause("c")
        assert ({None: "PAUSED"}, []) == (stage.states(), list(herder.tasks("c")))
        herder.resume("c")
        until(lambda: stage.states() == ALL_RUN)


def test_a_new_configuration_lets_the_run_end_before_the_next_begins() -> None:
    """The target state stays; tasks that are no more are forgotten."""
    stage = Stage(holds=True)
    with stage.herder() as herder:
        herder.create(request())
        old = stage.the_run()
        until(lambda: stage.states() == ALL_RUN)
        changed = herder.put_config("c", {**config(), "tasks.max": "1"})
        assert not changed.is_new
        assert old.asked.is_set()
        assert old is stage.the_run()
        old.end()
        until(lambda: stage.states() == {None: "RUNNING", 0: "RUNNING"})

        assert "1" == stage.the_run().spec.props["tasks.max"]
        assert len(herder.tasks("c")) == 1


def test_a_patch_merges_takes_out_and_leaves_the_rest() -> None:
    """Nobody's change in between is lost; an unknown connector is not made."""
    with Stage().herder() as herder:
        herder.create(request(initial_state=TargetState.STOPPED))
        with ThreadPoolExecutor(8) as clients:
            for each in range(8):
                clients.submit(herder.patch_config, "c", {f"k{each}": str(each)})
        herder.patch_config("c", {"k0": None, "tasks.max": "3"})

        keys = {f"k{each}": str(each) for each in range(1, 8)}
        assert {**config(name="c"), "tasks.max": "3", **keys} == herder.info("c").config
        with pytest.raises(NotFoundError, match=r"^Connector d not found$"):
            herder.patch_config("d", {})
        with pytest.raises(BadRequestError, match=r"doesn't match"):
            herder.patch_config("c", {"name": "d"})


def test_a_deleted_connector_is_forgotten_and_its_name_is_free() -> None:
    """When the call returns nothing of it runs, and nothing is left of its statuses and topics."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        stage.topics.put("c", ["t"])
        herder.delete("c")

        assert ([], {}, []) == (stage.running, dict(stage.states()), list(herder.topics("c")))
        with pytest.raises(NotFoundError, match=r"^No status found for connector c$"):
            herder.status("c")
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)


def test_what_reads_a_deleted_connector_s_own_topic_is_closed() -> None:
    """Nobody would ask for it again."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        stage.offset_stores.stores.of(NamedConnector(name="c", offsets_topic=OWN))
        herder.delete("c")

    assert [True] == stage.offset_stores.closed()


class JudgeOfGroups(Judge):
    """Its connectors keep their offsets in a group."""

    def may_have_offset_group(self, name: str) -> bool:
        """They do."""
        return name == PLANNED

    def run_spec(self, submitted: Resolution) -> RunSpec:
        """With the group."""
        own = ConnectorOffsetsGroup(group=OffsetGroup(group_id="g", codec="m:C"), connection={})
        return replace(super().run_spec(submitted), offsets_group=own)


@pytest.mark.parametrize(("judge", "group_id"), [(Judge(), None), (JudgeOfGroups(), "g")])
def test_offsets_are_read_where_the_connector_keeps_them(
    judge: Judge, group_id: str | None
) -> None:
    """Only of a class that may have a group the configuration is read for that."""
    stage = Stage(judge=judge)
    with stage.herder() as herder:
        herder.create(request())
        herder.offsets("c")
        herder.offset_lag("c")

    asked = [
        each.offsets_group and each.offsets_group.group.group_id for each in stage.changes.read_of
    ]
    assert [group_id, group_id] == asked


def test_a_deletion_that_takes_too_long_is_reported() -> None:
    """The connector is gone all the same; one of the same name begins when the old run has ended."""
    stage = Stage(holds=True, grace=-14.9)
    with stage.herder() as herder:
        herder.create(request())
        old = stage.the_run()
        with pytest.raises(
            ServerError, match=r"^It is deleted, but the tasks of connector c have not"
        ):
            herder.delete("c")
        assert [] == herder.connectors()

        herder.create(request())
        assert old is stage.the_run()
        old.end(RetriableError("too late to matter"))
        until(lambda: stage.states() == ALL_RUN)


@pytest.mark.parametrize("act", ["pause", "resume", "stop"])
def test_states_of_unknown_connectors(act: str) -> None:
    """404 with the words of Kafka Connect's distributed mode."""
    with Stage().herder() as herder, pytest.raises(NotFoundError, match=r"^Unknown connector c$"):
        getattr(herder, act)("c")


def test_unknown_connectors_are_not_found() -> None:
    """Everywhere, without a ghost in the status."""
    stage = Stage()
    with stage.herder() as herder:
        for ask in (
            lambda: herder.info("c"),
            lambda: herder.tasks("c"),
            lambda: herder.delete("c"),
            lambda: herder.offsets("c"),
            lambda: herder.alter_offsets("c", [CHANGE]),
            lambda: herder.reset_offsets("c"),
        ):
            with pytest.raises(NotFoundError, match=r"^Connector c not found$"):
                ask()
        for restart in (
            lambda: herder.restart(RestartRequest(name="c")),
            lambda: herder.restart_task("c", 0),
        ):
            with pytest.raises(NotFoundError, match=r"^Unknown connector: c$"):
                restart()
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)
        for task in (5, -1):
            with pytest.raises(NotFoundError, match=f"^Unknown task: c-{task}$"):
                herder.restart_task("c", task)

        assert {None, 0, 1} == stage.states().keys()


def test_a_stopped_connector_has_no_task_to_restart() -> None:
    """In distributed mode's words, whatever the number; what is not there stays not found."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request(initial_state=TargetState.STOPPED))
        for task in (0, 5):
            with pytest.raises(ConflictError) as refused:
                herder.restart_task("c", task)
            assert str(refused.value) == (
                "Cannot complete request momentarily due to no known leader URL, likely because a "
                "rebalance was underway."
            )
        with pytest.raises(NotFoundError):
            herder.restart_task("c", -1)


def test_a_failed_connector_shows_its_trace_until_it_is_restarted() -> None:
    """Resume does not mend it, as in Kafka Connect."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        stage.the_run().end(ValueError("it broke"))
        until(lambda: herder.failed() == ["c"])
        herder.resume("c")

        own = herder.status("c").connector
        assert (State.FAILED, "it broke") == (own.state, own.trace)
        herder.restart(RestartRequest(name="c"))
        until(lambda: stage.states() == ALL_RUN)


def test_a_connector_that_cannot_be_made_fails() -> None:
    """It exists, with the reason in its trace, and a better configuration makes it run."""
    stage = Stage()
    with stage.herder() as herder:
        herder.put_config("c", config(broken="yes"))
        own = herder.status("c").connector
        assert own.state is State.FAILED
        assert "it cannot be made" in (own.trace or "")
        assert ["c"] == [each.connector for each in stage.told if isinstance(each, ConnectorFailed)]

        herder.put_config("c", config())
        until(lambda: stage.states() == ALL_RUN)


def test_a_connector_that_has_failed_or_fails_at_its_end_can_be_stopped() -> None:
    """It is stopped then, without tasks, and runs when it is resumed; so it can be deleted."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=config(broken="yes")))
        until(lambda: stage.states() == {None: "FAILED"})
        herder.stop("c")
        until(lambda: stage.states() == {None: "STOPPED"})
        herder.put_config("c", config())
        assert {None: "STOPPED"} == stage.states()
        herder.resume("c")
        until(lambda: stage.states() == ALL_RUN)

        stage.the_run().failure = RuntimeError("it cannot stop")
        herder.stop("c")
        until(lambda: stage.states() == {None: "STOPPED"})
        assert ([], []) == (list(herder.tasks("c")), stage.running)
        herder.resume("c")
        until(lambda: stage.states() == ALL_RUN)
        herder.stop("c")
        herder.delete("c")
        assert [] == list(herder.connectors())


def test_a_configuration_may_replace_one_whose_secrets_are_gone(tmp_path: Path) -> None:
    """Nothing of the old one has to be resolved for it."""
    secret = tmp_path / "s.properties"
    secret.write_text("k=v", "utf-8")
    stage = Stage()
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=config(key=f"${{file:{secret}:k}}")))
        until(lambda: stage.states() == ALL_RUN)
        first = stage.the_run()
        secret.unlink()
        herder.put_config("c", config(key="w"))
        until(lambda: stage.states() == ALL_RUN and stage.the_run() is not first)

        assert "w" == stage.the_run().spec.props["key"]
        until(lambda: {"w"} == {each.config["key"] for each in herder.tasks("c")})


def test_tasks_of_a_connector_whose_restart_fails_are_no_one_s(tmp_path: Path) -> None:
    """They were about to run, and do not: only the connector has failed."""
    secret = tmp_path / "s.properties"
    secret.write_text("k=v", "utf-8")
    stage = Stage()
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=config(key=f"${{file:{secret}:k}}")))
        until(lambda: stage.states() == ALL_RUN)
        secret.unlink()
        herder.restart(RestartRequest(name="c", include_tasks=True))

        gone = {None: "FAILED", 0: "UNASSIGNED", 1: "UNASSIGNED"}
        until(lambda: stage.states() == gone)


def test_a_restart_with_flags_reports_what_it_restarts() -> None:
    """Only what failed, if that was asked for; nothing when nothing has."""
    stage = Stage(holds=True)
    with stage.herder() as herder:
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)
        untouched = herder.restart(RestartRequest(name="c", only_failed=True))
        assert untouched is not None
        assert untouched.connector.state is State.RUNNING
        assert not stage.the_run().asked.is_set()

        stage.statuses.put("c", 1, Status(state="FAILED", worker_id="w", trace="it broke"))
        asked = RestartRequest(name="c", only_failed=True, include_tasks=True)
        plan = herder.restart(asked)
        assert plan is not None
        assert [State.RUNNING, State.RUNNING, State.RESTARTING] == [
            each.state for each in (plan.connector, *plan.tasks)
        ]
        assert {None: "RUNNING", 0: "RUNNING", 1: "RESTARTING"} == stage.states()
        stage.the_run().end()
        until(lambda: stage.states() == ALL_RUN)


class Remembering(MemoryStatusStore):
    """Knows every state that was put."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[str] = []

    def put(self, connector: str, task: int | None, status: Status) -> None:
        """Remember it, too."""
        self.states.append(status.state)
        super().put(connector, task, status)


def test_a_run_that_was_asked_to_end_says_no_more_how_it_is() -> None:
    """Its connector is shown as restarting until it runs again, and not as no one's."""
    remembering = Remembering()
    stage = Stage(holds=True, statuses=remembering)
    with stage.herder() as herder:
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)
        remembering.states.clear()
        herder.restart(RestartRequest(name="c", include_tasks=True))
        stage.the_run().end()
        until(lambda: stage.states() == ALL_RUN)

        assert [*["RESTARTING"] * 3, *["RUNNING"] * 3] == remembering.states


def test_a_restart_of_a_paused_connector_leaves_it_paused() -> None:
    """Also one that failed before it was paused."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        stage.the_run().end(ValueError("it broke"))
        until(lambda: herder.failed() == ["c"])
        herder.pause("c")
        assert "FAILED" == stage.states()[None]
        herder.restart(RestartRequest(name="c", include_tasks=True))

        assert "PAUSED" == stage.states()[None]
        assert [] == stage.running


def test_secrets_stay_placeholders_in_tasks() -> None:
    """In the answer and in the store, also where a task has them under a key of its own."""
    stage = Stage()
    with stage.herder() as herder:
        herder.put_config("c", config(password="${secret}"))
        until(lambda: stage.states() == ALL_RUN)

        assert "${secret}" == herder.tasks("c")[0].config["password"]
        assert "hunter2" not in str(stage.configs.task_configs("c"))
        assert "hunter2" == stage.the_run().spec.props["password"]


def test_offsets_change_only_while_the_connector_is_stopped() -> None:
    """400 with the sentence otherwise; nothing given is told before anything else."""
    stage = Stage()
    with stage.herder() as herder:
        with pytest.raises(BadRequestError, match=r"^Partitions / offsets need to be provided"):
            herder.alter_offsets("no one", [])
        herder.create(request())
        for act in (herder.pause, herder.stop):
            with pytest.raises(BadRequestError, match=r"must be in the STOPPED state .*/c/stop'"):
                herder.reset_offsets("c")
            act("c")
        assert "altered it" == herder.alter_offsets("c", [CHANGE])
        assert "reset it" == herder.reset_offsets("c")

        assert [("altered", "c"), ("reset", "c")] == stage.changes.done


def test_offsets_change_only_after_the_run_has_ended() -> None:
    """A stop returns before that; a run that takes too long is told, and nothing is changed."""
    stage = Stage(holds=True, grace=-14.9)
    with stage.herder() as herder:
        herder.create(request())
        herder.stop("c")
        with pytest.raises(ServerError, match=r"^The offsets were not changed, but the tasks of"):
            herder.alter_offsets("c", [CHANGE])
        assert [] == stage.changes.done

        stage.the_run().end()
        assert "altered it" == herder.alter_offsets("c", [CHANGE])


def test_a_resume_waits_while_offsets_change() -> None:
    """And others do not wait."""
    stage = Stage()
    entered, leave = threading.Event(), threading.Event()

    def changing() -> None:
        entered.set()
        assert leave.wait(10)

    stage.changing = changing
    with stage.herder() as herder, ThreadPoolExecutor() as clients:
        herder.create(request(initial_state=TargetState.STOPPED))
        altered = clients.submit(herder.alter_offsets, "c", [CHANGE])
        assert entered.wait(10)
        resumed = clients.submit(herder.resume, "c")
        herder.create(request("d"))
        assert not resumed.done()
        assert [] == [each for each in stage.running if each.spec.name == "c"]
        leave.set()

        assert "altered it" == altered.result(10)
        resumed.result(10)
        until(lambda: stage.states() == ALL_RUN)


def test_of_two_creations_with_offsets_one_wins_and_the_other_changes_nothing() -> None:
    """The loser hears so before it wipes anything."""
    stage = Stage()
    with stage.herder() as herder, ThreadPoolExecutor() as clients:
        creations = [
            clients.submit(herder.create, request(initial_offsets=[CHANGE])) for _ in range(5)
        ]
        errors = [each.exception(10) for each in creations]
        won = [each.result() for each in creations if not each.exception()]

        assert [("created", "c")] == stage.changes.done
        assert ["created it"] == [each.offsets_message for each in won]
        assert 4 == sum(isinstance(each, AlreadyExistsError) for each in errors)
        assert all(
            "failed at step 1: validating the config)" in str(each) for each in errors if each
        )
        until(lambda: stage.states() == ALL_RUN)


def test_a_creation_with_offsets_that_fails_leaves_no_connector() -> None:
    """And the name is free again."""
    stage = Stage()

    def changing() -> None:
        raise ServerError("it failed")

    stage.changing = changing
    with stage.herder() as herder:
        with pytest.raises(RequestError, match=r"it failed"):
            herder.create(request(initial_offsets=[CHANGE]))
        assert [] == herder.connectors()
        herder.create(request())


def test_before_kafka_is_there_requests_are_answered_and_nothing_runs() -> None:
    """What needs Kafka waits; connectors start when it comes."""
    stage = Stage()
    with stage.herder(kafka=False) as herder, ThreadPoolExecutor() as clients:
        herder.create(request())
        read = clients.submit(herder.offsets, "c")

        assert Health.STARTING is herder.health().status
        assert herder.server().kafka_cluster_id is None
        assert ([], {None: "UNASSIGNED"}) == (stage.running, stage.states())
        assert not read.done()
        stage.kafka.set()
        assert [{"at": 1}] == [each.offset for each in read.result(10)]
        until(lambda: stage.states() == ALL_RUN)
        assert Health.HEALTHY is herder.health().status
        assert "k" == herder.server().kafka_cluster_id


def test_slots_of_another_version_make_the_worker_unhealthy() -> None:
    """With the same sentence as the states of their tasks, until they have the right one."""
    stage = Stage()
    with stage.herder() as herder:
        until(lambda: Health.HEALTHY is herder.health().status)
        refusal = stage.versions.refusal("there", "0.0.1")
        health = herder.health()

        assert Health.UNHEALTHY is health.status
        assert refusal is not None
        assert health.message.endswith(refusal)
        stage.versions.refusal("there", __version__)
        assert Health.HEALTHY is herder.health().status


def test_kafka_that_never_comes_is_reported_to_those_who_wait() -> None:
    """And to whoever runs the worker."""
    stage = Stage(kafka_fails=RetriableError("no one answers"))
    with stage.herder() as herder:
        herder.create(request())
        with pytest.raises(ServerError, match=r"still starting up.*no one answers"):
            herder.offsets("c")
        until(lambda: str(herder.failure) == "no one answers")


def test_stored_connectors_run_again_in_their_target_state() -> None:
    """Whatever the statuses said when the last process ended; statuses of others are forgotten."""
    stage = Stage()
    for name, state in (("c", "RUNNING"), ("p", "PAUSED"), ("s", "STOPPED")):
        stage.configs.put_connector(
            StoredConnector(name=name, config=config(name=name), target_state=state)
        )
        stage.configs.put_task_configs(name, [{}])
        stage.statuses.put(name, 0, Status(state="RUNNING", worker_id="dead"))
    stage.statuses.put("ghost", None, Status(state="RUNNING", worker_id="dead"))
    with stage.herder() as herder:
        until(lambda: stage.states() == ALL_RUN)

        assert ["c", "p", "s"] == list(herder.connectors())
        assert {None: "PAUSED", 0: "PAUSED"} == stage.states("p")
        assert {None: "STOPPED"} == stage.states("s")
        assert {} == stage.states("ghost")


def test_those_left_alone_are_unassigned_until_they_are_asked_for() -> None:
    """``--only-files``; those that are not to run show what they are."""
    stage = Stage()
    for name, target in {"c": "RUNNING", "d": "RUNNING", "p": "PAUSED", "s": "STOPPED"}.items():
        stage.configs.put_connector(
            StoredConnector(name=name, config=config(name=name), target_state=target)
        )
    with stage.herder(only=["c"]) as herder:
        until(lambda: stage.states() == ALL_RUN)
        assert {None: "UNASSIGNED"} == stage.states("d")
        assert {None: "PAUSED"} == stage.states("p")
        assert {None: "STOPPED"} == stage.states("s")

        herder.resume("d")
        until(lambda: stage.states("d") == ALL_RUN)


def test_a_connector_whose_offsets_are_unsettled_waits_until_they_are() -> None:
    """Requests about it as well."""
    stage = Stage(unsettled=["c"])
    with stage.herder(kafka=False) as herder, ThreadPoolExecutor() as clients:
        created = clients.submit(herder.create, request())
        herder.create(request("d"))
        assert not created.done()

        stage.kafka.set()
        created.result(10)
        until(lambda: stage.states() == ALL_RUN)


def test_topics_are_kept_and_reset() -> None:
    """Of unknown connectors there are none, and no error."""
    stage = Stage()
    stage.topics.put("c", ["b", "a"])
    with stage.herder() as herder:
        assert (["a", "b"], []) == (list(herder.topics("c")), list(herder.topics("d")))
        herder.reset_topics("c")
        assert [] == list(herder.topics("c"))


@pytest.mark.parametrize("target", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_state_that_the_store_does_not_take_is_written_later(target: TargetState) -> None:
    """The request is granted, as its target state is stored."""
    statuses = SlowStatuses()
    stage = Stage(statuses=statuses)
    with stage.herder() as herder:
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)
        statuses.refusals = 2
        (herder.stop if target is TargetState.STOPPED else herder.pause)("c")

        until(lambda: stage.states().get(None) == target.value)
        assert 0 == statuses.refusals


def test_a_connector_that_others_have_deleted_is_not_started() -> None:
    """As when its restart comes before this worker is told to give it up; one of the name can be created again."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request(initial_state=TargetState.PAUSED))
        stage.configs.delete_connector("c")
        stage.statuses.forget("c")
        herder._queue.ask(
            None,
            lambda: herder._reconciler.want("c", TargetState.RUNNING),
        )

        assert ([], []) == (stage.running, list(herder.failed()))
        herder.create(request())
        until(lambda: stage.states() == ALL_RUN)


def test_a_worker_that_stands_alone_is_its_whole_group() -> None:
    """It leads, with all its connectors, and no one can take over from it."""
    with Stage().herder() as herder:
        herder.create(request("b"))
        herder.create(request("a"))
        [alone] = herder.workers()

        assert ("w", True, WorkerState.ACTIVE) == (alone.id, alone.is_leader, alone.state)
        assert ["a", "b"] == list(alone.connectors)
        herder.rejoin("w")
        with pytest.raises(BadRequestError, match="Worker w stands alone: no other one can"):
            herder.relinquish("w")
        for ask in (herder.relinquish, herder.rejoin):
            with pytest.raises(NotFoundError, match=r"Unknown worker v\. There is only w"):
                ask("v")
