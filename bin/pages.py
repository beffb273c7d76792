"""Writes the pages that are made from the code: docs/reference.md and docs/metrics.md. ``--check`` only compares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.config.distributed_config import DistributedConfig
from headrace.config.worker_config import ROLES, WorkerConfig
from headrace.connect.config import Config
from headrace.connect.setting import Limits, Setting
from headrace.connectors.file_stream import FileStreamSourceConfig
from headrace.connectors.files.aiven.config import AivenS3Config
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.sqlite_table import SqliteConfig
from headrace.converters.avro_config import AvroConverterConfig
from headrace.converters.json_converter import JsonConverterConfig
from headrace.converters.string_converter import StringConverterConfig
from headrace.herder.answers import value_text
from headrace.mirror.settings import (
    MirrorCheckpointConfig,
    MirrorHeartbeatConfig,
    MirrorSourceConfig,
)
from headrace.observe.metrics import OF_CONNECTOR, OF_GROUP, OF_TASK, OF_WORKER, Metric
from headrace.plugins.config_def import framework_settings
from headrace.rest.config import RestConfig
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.stores.catalogue import KINDS
from headrace.transforms.catalogue import (
    PREDICATE_CLASSES,
    TRANSFORM_CLASSES,
    predicate_config,
    transform_config,
)
from headrace.transforms.spark_sql import SPARK_SQL

DOCS = Path(__file__).resolve().parent.parent / "docs"
HOW = "This page is generated from the code by `bin/pages.py`; a test fails when it is out of date."
REFERENCE = f"""# Every setting

{HOW} The pages that explain the settings are named above each table.
A meaning ends with the allowed values, if the type alone does not say them. Rules across settings are reported when a
configuration is validated.
"""
METRICS = f"""# Metrics

A worker that `headrace run` or `headrace worker` has started answers `GET /metrics` at its `listeners`, for Prometheus: no agent, no
JMX. The names are Kafka Connect's, `kafka_connect_<group>_<attribute>` with `-` as `_`; its tags are labels. A word, such as a state,
is a label of a metric that is always 1: `kafka_connect_connector_metrics_status{{connector="c",status="running"}} 1`.

Totals are counted from the start of the worker's process, and tasks' averages, minima and maxima over the current or the last
micro-batch. Tasks send their counts with their heartbeat, about once a second: what a task did after its last heartbeat before it
died is in Kafka and not in the totals. Everything else is measured only when a request asks for it. `headrace run --once` and
`headrace.run` answer no requests, so they have no metrics.

{HOW}
"""
LEFT_OUT = """
## Metrics of Kafka Connect that are missing

| metrics | here |
|---|---|
| `…-rate` | Prometheus computes them: `rate(kafka_connect_source_task_metrics_source_record_write_total[1m])`. |
| `task-startup-…` | Left out: a task starts with each micro-batch. |
| `running-ratio`, `pause-ratio`, `offset-commit-success-percentage`, `offset-commit-failure-percentage`, `source-record-active-count-max`, `source-record-active-count-avg` | Not measured. |
| `connect-coordinator-metrics` | Not measured. |
"""


def reference() -> str:
    """The page of every setting."""
    common = framework_settings()
    files = FilesConfig.settings()
    of_stores = {each.name for kind in KINDS.values() for each in kind.config.settings()}
    in_workers = {each.name for each in WorkerConfig.settings()}
    in_files = {each.name for each in files}
    in_mirror = {each.name for each in MirrorSourceConfig.settings()}
    parts = [
        _part("Workers", "run-a-worker", WorkerConfig.settings()),
        _part(
            "Workers of a group",
            "worker-group",
            (each for each in DistributedConfig.settings() if each.name not in in_workers),
        ),
        _part("REST", "rest", RestConfig.settings()),
        _part("Every connector", "run-a-worker", common, inherited=_CONVERTERS),
        _part("`files`", "read-files", (each for each in files if each.name not in of_stores)),
        *(
            _part(f"Stores: `{scheme}`", "read-stores", kind.settings())
            for scheme, kind in KINDS.items()
        ),
        _part("`file_stream`", "file-stream", FileStreamSourceConfig.settings()),
        _part("`sqlite`", "sqlite", SqliteConfig.settings()),
        _part(
            "Aiven's S3 source",
            "from-aiven-s3",
            (each for each in AivenS3Config.settings() if each.name not in in_files),
        ),
        _part("`mirror_source`", "mirror", MirrorSourceConfig.settings()),
        *(
            _part(title, "mirror", (each for each in kind.settings() if each.name not in in_mirror))
            for title, kind in (
                ("`mirror_checkpoint`", MirrorCheckpointConfig),
                ("`mirror_heartbeat`", MirrorHeartbeatConfig),
            )
        ),
        _part("Converter `json`", "converters", JsonConverterConfig.settings()),
        _part("Converter `avro`", "converters", AvroConverterConfig.settings()),
        _part("Converter `string`", "converters", StringConverterConfig.settings()),
        _part("Kafka as a source of Spark", "read-kafka", KafkaSourceOptions.settings()),
        *_plugin_parts("Transformation", TRANSFORM_CLASSES, transform_config),
        *_plugin_parts("Predicate", PREDICATE_CLASSES, predicate_config),
    ]
    return "\n".join((REFERENCE, *parts))


def metrics() -> str:
    """The page of metrics."""
    parts = (
        _metrics("The worker", "no labels", OF_WORKER),
        _metrics("The group of `headrace worker`", "no labels", OF_GROUP),
        _metrics("Connectors", "label `connector`", OF_CONNECTOR),
        _metrics("Tasks", "labels `connector` and `task`", OF_TASK),
    )
    return "\n".join((METRICS, *parts)) + LEFT_OUT


PAGES: Mapping[str, Callable[[], str]] = {"reference.md": reference, "metrics.md": metrics}
_CONVERTERS = frozenset(f"{role}.converter" for role in ROLES)


def _plugin_parts(
    kind: str, classes: Iterable[str], config: Callable[[str], type[Config] | None]
) -> Iterator[str]:
    """One part for each of *classes* that has settings; those for keys and for values are one."""
    listed = set[str]()
    for path in sorted(classes):
        name = path.rpartition(".")[2].partition("$")[0]
        declared = config(path)
        if name not in listed and declared is not None and declared.settings():
            listed.add(name)
            page = "spark-sql" if path == SPARK_SQL else "transforms"
            yield _part(f"{kind} `{name}`", page, declared.settings())


def _part(
    title: str, page: str, settings: Iterable[Setting], *, inherited: frozenset[str] = frozenset()
) -> str:
    lines = [f"## {title}", "", f"See [{page}.md]({page}.md)."]
    for group, members in _by_group(settings).items():
        lines += ["", f"**{group}**"] if group else []
        lines += ["", "| key | type | default | importance | meaning |", "|---|---|---|---|---|"]
        lines += [
            _row(
                f"`{each.name}`",
                each.type.value.lower(),
                "the worker's" if each.name in inherited else _default(each),
                each.importance,
                " ".join((each.doc, *_limits(each.limits))),
            )
            for each in members
        ]
    return "\n".join((*lines, ""))


def _by_group(settings: Iterable[Setting]) -> Mapping[str | None, Sequence[Setting]]:
    """Groups in the order of their first settings, each with all of its settings."""
    groups = dict[str | None, list[Setting]]()
    for each in settings:
        groups.setdefault(each.group, []).append(each)
    return groups


def _default(setting: Setting) -> str:
    if setting.required:
        return "required"
    text = value_text(setting.default, setting.type)
    if text is None:
        return "none"
    return f"`{text}`" if text else "empty"


def _limits(limits: Limits) -> Iterator[str]:
    if limits.one_of:
        yield f"One of {', '.join(f'`{each}`' for each in limits.one_of)}."
    if limits.at_least is not None:
        yield f"At least {limits.at_least}."
    if limits.at_most is not None:
        yield f"At most {limits.at_most}."


def _metrics(title: str, labels: str, listed: Sequence[Metric[Any]]) -> str:
    lines = [f"## {title}", "", f"With {labels}.", ""]
    lines += ["| metric | attribute | type | meaning |", "|---|---|---|---|"]
    lines += [
        _row(f"`{each.name}`", f"`{each.attribute}`", each.kind.value, each.doc) for each in listed
    ]
    return "\n".join((*lines, ""))


def _row(*cells: str) -> str:
    """One line of a table; a bar within a cell would end it."""
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def main() -> None:
    """Write the pages, or compare them; the exit code is 1 when one is stale."""
    stale = [name for name, made in PAGES.items() if _text(DOCS / name) != made()]
    if "--check" in sys.argv[1:]:
        sys.exit(f"stale: {', '.join(stale)}; run bin/pages.py" if stale else 0)
    for name in stale:
        (DOCS / name).write_text(PAGES[name]())
        print(f"docs/{name}")


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    main()
