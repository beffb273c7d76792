"""What Spark does between reading and writing of a connector, and to records of which types."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence

from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConnectError
from headrace.runtime.settings.stage_settings import TRANSFORMS, aliases
from headrace.slot.split.between import Between
from headrace.slot.split.planned_types import planned_types
from headrace.slot.sql_choice import is_sql, sql_step
from headrace.slot.work import StageChoice

_log = logging.getLogger(__name__)


def between_of(
    connector: SourceConnector, props: Mapping[str, str], stages: Sequence[StageChoice]
) -> Between | None:
    """What is done between the *stages* before the SQL step and those behind it; ``None`` where there is none.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it cannot be told of which types records are.
    """
    step = sql_step(stages)
    if step is None:
        return None
    before = list(itertools.takewhile(lambda each: not is_sql(each), stages))
    return Between(step=step, carries=planned_types(connector.record_schemas(props), before))


def between_problems(
    connector: SourceConnector, props: Mapping[str, str], stages: Sequence[StageChoice]
) -> Iterator[Problem]:
    """Why a SQL step cannot stand where it stands, in a configuration that is valid otherwise."""
    try:
        between_of(connector, props, stages)
    except Exception as error:  # noqa: BLE001 (authors write hooks)
        if not isinstance(error, ConnectError):
            _log.exception("A connector's hook failed during validation.")
        place = [is_sql(each) for each in stages].index(True)
        yield f"{TRANSFORMS}.{aliases(TRANSFORMS, props)[place]}.type", str(error)
