"""Names of files that say where records go, a file a round, and what is explained before and behind it."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from doubles.thread_engine import ThreadEngine
from end_to_end.scene import Scene
from headrace.cli.explain import explain
from headrace.observe.events import MicroBatchStarted
from headrace.testing.judge import committed_records

pytestmark = pytest.mark.broker

RECORDS = 300


def test_records_go_where_names_say_with_their_headers(bootstrap: str, tmp_path: Path) -> None:
    """Each file to its own partition, with its key; what was read is explained by the stored offsets."""
    topic = f"named-{os.getpid()}"
    settings = {
        "topic": topic,
        "files.name.template": "{{key}}-{{partition}}.jsonl",
        "files.headers": "name,size,modified,record,position,last",
        "files.max.objects.per.round": "1",
        "files.batch.max.rows": "100",
        "header.converter": "string",
    }
    scene = Scene(bootstrap, tmp_path, topic, connector=settings)
    for partition in range(3):
        lines = "".join(f'{{"n":{number}}}\n' for number in range(RECORDS))
        (scene.files / f"k{partition}-{partition}.jsonl").write_text(lines)
    paths = scene.write_configs()
    before = CliRunner().invoke(explain, paths, standalone_mode=False)

    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = set(admin.list_topics(timeout=10).topics)
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result()
    failures = scene.run_once(ThreadEngine(slots=2))
    after = CliRunner().invoke(explain, paths, standalone_mode=False)

    assert {} == failures
    assert not {topic, f"g-{topic}-offsets"} & names
    assert "would read 1 of 3 objects" in before.stdout
    assert 2 == before.stdout.count("waits for a later round")
    assert "would read 0 of 3 objects" in after.stdout
    assert 3 == after.stdout.count(f"It was read to its end: {RECORDS} records.")
    assert [True, True, None] == [
        event.has_more for event in scene.witness.events if isinstance(event, MicroBatchStarted)
    ]
    check_records(bootstrap, topic, scene.files)


def check_records(bootstrap: str, topic: str, folder: Path) -> None:
    """Each partition holds one file's records, in order, with its key and headers."""
    found = defaultdict[int, list[dict[str, str]]](list)
    for record in committed_records(bootstrap, topic):
        told = {key: value.decode() for key, value in record.headers}
        found[record.partition].append({**told, "key": (record.key or b"").decode()})
    for partition, records in found.items():
        path = folder / f"k{partition}-{partition}.jsonl"
        status = path.stat()
        shared = {
            "key": f"k{partition}",
            "file.name": str(path),
            "file.size": str(status.st_size),
            "file.modified": str(status.st_mtime_ns // 1_000_000),
        }
        assert RECORDS == len(records)
        for number, record in enumerate(records, 1):
            position = int(record.pop("file.position"))
            assert position == status.st_size or number < RECORDS
            last = "true" if number == RECORDS else "false"
            assert {**shared, "file.record": str(number), "file.last": last} == record
    assert [0, 1, 2] == sorted(found)
