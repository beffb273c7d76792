"""Names of files that tell a partition that the topic lacks, with a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from end_to_end.live import Life
from headrace.observe.events import MicroBatchEnded
from headrace.task.connector_spec import SenderKind
from headrace.testing.judge import committed_records

pytestmark = pytest.mark.broker


@pytest.fixture(params=SenderKind)
def life(bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> Life:
    """Two files: what the first one tells is there in every topic, what the second one tells is not."""
    (tmp_path / "in").mkdir()
    for partition in (0, 7):
        (tmp_path / "in" / f"a-{partition}.txt").write_text(f"{partition} a\n{partition} b\n")
    made = Life(bootstrap, tmp_path)
    made.add(
        "files",
        files_path=str(tmp_path / "in"),
        files_name_regex=r"a-(?P<partition>\d+)\.txt",
        files_format="lines",
        files_min_age_ms="0",
        tasks_max="1",
        headrace_sender=request.param,
    )
    return made


def there_are(life: Life, partitions: int | None) -> str:
    """The topic, made with so many *partitions* or, for ``None``, by its first record; what it has."""
    topic = life.connectors[0]["topic"]
    if partitions is None:
        return "partition 0 only"
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    return f"the partitions 0 to {partitions - 1}"


@pytest.mark.parametrize("partitions", [None, 3])
def test_the_object_the_partition_and_those_that_there_are_are_told(
    life: Life, partitions: int | None
) -> None:
    """What comes before is in Kafka once, also after a second run, which tells the same."""
    there = there_are(life, partitions)

    for _ in range(2):
        (failure,) = life.run_once().values()

        assert f"{life.folder}/in/a-7.txt, record " in str(failure)
        assert f"has no partition 7: it has {there}. Use one of these" in str(failure)
    assert ["0 a", "0 b"] == life.values(life.connectors[0]["topic"])


@pytest.mark.parametrize("partitions", [None, 3])
@pytest.mark.parametrize("letters", [True, False])
def test_they_are_passed_over(life: Life, partitions: int | None, *, letters: bool) -> None:
    """As any record that cannot be sent: to the dead letters, or skipped and counted."""
    there_are(life, partitions)
    topic = life.connectors[0]["topic"]
    life.connectors[0]["errors.tolerance"] = "all"
    if letters:
        life.connectors[0] |= {
            "errors.deadletterqueue.topic.name": f"{topic}-dead",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }

    assert {} == life.run_once()

    assert ["0 a", "0 b"] == life.values(topic)
    told = [each for each in life.heard(MicroBatchEnded) if isinstance(each, MicroBatchEnded)]
    if letters:
        found = list(committed_records(life.bootstrap, f"{topic}-dead"))
        assert [b"7 a", b"7 b"] == [each.value for each in found]
        stage = dict(found[0].headers)["__connect.errors.stage"]
        assert b"KAFKA_PRODUCE" == stage
    assert 2 == sum(each.dead_lettered if letters else each.skipped for each in told)
