"""What Spark does between reading and writing of a connector, and to records of which types."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConnectError
from headrace.runtime.settings.stage_settings import TRANSFORMS, aliases
from headrace.slot.split.between import Between
from headrace.slot.split.planned_types import planned_types
from headrace.slot.sql_choice import is_sql, sql_step
from headrace.slot.work import StageChoice

_log = logging.getLogger(__name__)

SqlJudge = Callable[[Between], Sequence[Problem]]
"""Says what is wrong with a SQL step on such records: settings of SparkSql, each with a sentence."""


def no_judge(_: Between) -> Sequence[Problem]:
    """Where nobody knows expressions: Spark says it when the connector starts."""
    return ()


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
    carries = planned_types(connector.record_schemas(props), before)
    return Between(step=replace(step, prefix=_prefix(props, stages)), carries=carries)


def between_problems(
    connector: SourceConnector,
    props: Mapping[str, str],
    stages: Sequence[StageChoice],
    judge: SqlJudge = no_judge,
) -> Iterator[Problem]:
    """Why a SQL step cannot be done where it stands, in a configuration that is valid otherwise."""
    try:
        between = between_of(connector, props, stages)
        found = () if between is None else judge(between)
    except Exception as error:  # noqa: BLE001 (authors write hooks)
        if not isinstance(error, ConnectError):
            _log.exception("A connector's hook failed during validation.")
        found = (("type", str(error)),)
    for name, sentence in found:
        yield f"{_prefix(props, stages)}{name}", sentence


def _prefix(props: Mapping[str, str], stages: Sequence[StageChoice]) -> str:
    place = [is_sql(each) for each in stages].index(True)
    return f"{TRANSFORMS}.{aliases(TRANSFORMS, props)[place]}."
