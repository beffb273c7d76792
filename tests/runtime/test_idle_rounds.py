"""A connector that has nothing to do asks the offset store now and then, and always before it does something."""

from __future__ import annotations

from doubles.puppets import SOURCE, next_number
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.task import Split
from headrace.observe.events import ConnectorIdle
from headrace.runtime.services import Timing
from headrace.storage.memory import MemoryOffsetStore
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import Desk
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)
QUICK = Timing(idle_poll=0.01, grace=0.3, lease=5.0)


class Counting(MemoryOffsetStore):
    """Counts how often it is asked for its end."""

    asked = 0

    def refresh(self) -> None:
        """Count."""
        self.asked += 1
        super().refresh()


def test_idle_rounds_do_not_ask_the_store_each_time() -> None:
    """For ten connectors that would take more of a core than all else that they do."""
    desk = Desk(lambda *_: FINISHED, lambda _: Plan(), timing=QUICK, once=False)
    store = desk.offsets = Counting()
    run = desk.start()
    until(lambda: len(desk.heard(ConnectorIdle)) > 20)
    run.ask_to_stop()
    assert run.join(10.0)
    desk.channel.close()

    # When it takes over, and in its first round.
    assert 2 == store.asked


def test_work_is_planned_from_what_is_stored_now() -> None:
    """A process that was away for a while must not do again what another one did meanwhile."""
    seen = list[int]()

    def plan(request: PlanRequest) -> Plan:
        at = next_number(request.offsets)
        if len(desk.heard(ConnectorIdle)) < 3 or at > 1:
            return Plan()
        if not seen:
            desk.offsets.put("c", {SOURCE: {"next": 1}})
        seen.append(at)
        return Plan(shares=[[Split(partition=SOURCE)]])

    def played(*_: object) -> SlotReport:
        desk.offsets.put("c", {SOURCE: {"next": 2}})
        return FINISHED

    desk = Desk(played, plan, timing=QUICK, once=False)
    run = desk.start()
    until(lambda: desk.engine.tickets)
    run.ask_to_stop()
    assert run.join(10.0)
    desk.channel.close()

    assert ([0, 1], 1) == (seen, len(desk.engine.tickets))
