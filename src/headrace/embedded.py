"""``headrace.run``: a worker inside another program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.observe.event_log import EventLog
from headrace.observe.events import to_all
from headrace.observe.summary import ConnectorSummary, Summaries
from headrace.plugins import checked_worker, validated_connectors
from headrace.worker import DataPlane, running, spark_engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_once(
    worker: Mapping[str, object],
    connectors: Sequence[Mapping[str, object]],
    *,
    state_file: Path,
    spark: SparkSession | None = None,
) -> Mapping[str, ConnectorSummary]:
    """See :func:`headrace.run`."""
    # With the caller's own session the worker's master has no effect, so it is not validated.
    config = checked_worker(
        worker
        if spark is None
        else {key: value for key, value in worker.items() if key != "spark.master"}
    )
    # There is no configuration file that could be moved away from its state file.
    config = replace(config, state_file=str(state_file.absolute()))
    ready = validated_connectors(
        [partial(dict[str, object], props) for props in connectors], config
    )
    engine = spark_engine(config, ready, spark)
    summaries = Summaries()
    with running(
        config,
        ready,
        state_file=state_file,
        emit=to_all(EventLog(has_end=True), summaries),
        once=True,
        data_plane=DataPlane.of(engine),
    ) as herder:
        herder.ready()
        failures = herder.wait_for_end()
    for failure in failures.values():
        raise failure
    return summaries.by_connector()
