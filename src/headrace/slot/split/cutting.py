"""What each of a slot's two processes does of its work; pure."""

from __future__ import annotations

from dataclasses import replace

from headrace.slot.sql_choice import is_sql
from headrace.slot.work import SlotWork


def work_of_reading(work: SlotWork) -> SlotWork:
    """*work* with the transformations before the SQL step."""
    return replace(work, transforms=work.transforms[: _place(work)])


def work_of_writing(work: SlotWork) -> SlotWork:
    """*work* with the transformations behind the SQL step, and nothing to read."""
    return replace(work, transforms=work.transforms[_place(work) + 1 :], splits=())


def _place(work: SlotWork) -> int:
    return [is_sql(each) for each in work.transforms].index(True)
