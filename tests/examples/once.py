"""Runs a connector of the examples as `headrace run --once` does, with processes in place of Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import first_connector

from doubles.process_engine import ProcessEngine
from headrace.plugins import checked_worker, validated_connector
from headrace.worker import DataPlane, running

EXAMPLES = Path(first_connector.__file__).parent


def run_once(
    bootstrap: str,
    folder: Path,
    topic: str,
    *,
    worker: str,
    connector: str,
    place: Mapping[str, str],
    slots: int,
):
    """Run *connector* until all is read. *worker* and *connector* are files of the examples.

    *place* are its settings that name files, which lie in *folder*.
    """
    config = checked_worker(
        json.loads((EXAMPLES / worker).read_text())
        | {"bootstrap.servers": bootstrap, "group.id": topic}
    )
    props = json.loads((EXAMPLES / connector).read_text())
    props |= {key: str(folder / name) for key, name in place.items()}
    props["topic"] = topic
    with running(
        config,
        [validated_connector(props, config)],
        state_file=folder / "state.db",
        emit=lambda _event: None,
        once=True,
        data_plane=DataPlane.of(ProcessEngine(slots=slots, python_path=[str(EXAMPLES)])),
    ) as herder:
        herder.ready()
        assert {} == herder.wait_for_end()
