"""``headrace.run``: a worker inside somebody else's program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.admission import admitted, checked_worker
from headrace.observe.logs import EventLog
from headrace.standalone import spark_engine, standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_once(
    worker: Mapping[str, str],
    connectors: Sequence[Mapping[str, str]],
    *,
    state_file: Path,
    spark: SparkSession | None = None,
) -> None:
    """See :func:`headrace.run`."""
    config = checked_worker(worker)
    ready = [admitted(props, config) for props in connectors]
    engine = spark_engine(config, ready, spark)
    with standalone(
        config, ready, state_file=state_file, tell=EventLog(), once=True, engine=engine
    ) as made:
        made.worker.start(made.specs)
        failures = made.worker.wait()
    for failure in failures.values():
        raise failure
