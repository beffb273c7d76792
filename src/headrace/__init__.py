"""headrace: a Kafka Connect-compatible source runtime whose data plane runs on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.observe.summary import ConnectorSummary

__all__ = ["__version__", "run"]
__version__ = "0.1.0"


def run(
    worker: Mapping[str, str | float | bool],
    connectors: Sequence[Mapping[str, str | float | bool]],
    *,
    state_file: Path | str,
    spark: SparkSession | None = None,
) -> Mapping[str, ConnectorSummary]:
    """Run *connectors* until everything has been read and committed, then return what each has done.

    *worker* and each of *connectors* are configurations as for ``headrace run``, their values text, numbers
    or booleans; *state_file* holds the worker's state, and is created if it is missing. With *spark*, the
    slots run on that session, which is left open; without it, the program must have no active session,
    which would be taken over. Raises :class:`~headrace.connect.errors.ConnectError` when a configuration is
    invalid or Kafka cannot be reached, and the connector's error when one fails; the others have then been
    read to their end.

    The result has a :class:`~headrace.observe.summary.ConnectorSummary` for each connector, by its name: records,
    bytes, files, seconds.
    """
    from headrace.embedded import run_once  # noqa: PLC0415 (importing headrace stays cheap)

    return run_once(worker, connectors, state_file=Path(state_file), spark=spark)
