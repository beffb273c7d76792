"""Aiven's S3 source moved over: its offsets, our run, no record twice and none lost."""

from __future__ import annotations

import gzip
import io
import logging
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.stores.files_bucket import FilesBucket, Stored, values
from headrace.connect import PlanRequest, SourcePartition, TaskFailedError
from headrace.connect.schema import OPTIONAL_BYTES
from headrace.connectors.files.aiven.connector import AivenS3Connector, AivenS3Task
from headrace.offsets.index import LogPosition, OffsetIndex
from headrace.testing.task_runs import Delivered, LocalContext, LocalRun, StoredOffsets
from sources.avro_files import avro_file

ROWS = 7
SCHEMA = {"type": "record", "name": "Row", "fields": [{"name": "n", "type": "int"}]}
NAME = "s3-source"


def parquet() -> bytes:
    """Rows in row groups of three."""
    out = io.BytesIO()
    pq.write_table(pa.table({"n": range(ROWS)}), out, row_group_size=3)
    return out.getvalue()


# Their counts: blank lines are none, a header is none, and the last piece of bytes may be short.
CONTENTS = {
    "avro": avro_file(SCHEMA, [{"n": n} for n in range(ROWS)]),
    "bytes": bytes(range(6 * 4 + 3)),
    "csv": b"n,text\n" + b"".join(b'%d,"a\nb"\n' % n for n in range(ROWS)),
    "jsonl": b"\n".join(b'{"n":%d}\n' % n for n in range(ROWS)),
    "parquet": parquet(),
}


def props(bucket: FilesBucket, **more: str) -> dict[str, str]:
    """A configuration as the original has it."""
    login = bucket.config.originals
    return {
        "aws.s3.bucket.name": bucket.config.bucket,
        "aws.s3.endpoint": login["s3.endpoint"],
        "aws.access.key.id": "id",
        "aws.secret.access.key": "secret",
        "aws.s3.backoff.max.retries": "2",
        "aws.s3.backoff.delay.ms": "1",
        "topic": "t",
        "file.name.template": ".*",
        "transformer.max.buffer.size": "4",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def partition(bucket: FilesBucket, key: str) -> SourcePartition:
    """The original's source partition of an object."""
    return SourcePartition({"bucket": bucket.config.bucket, "objectKey": key})


def run(bucket: FilesBucket, stored: Stored, **more: str) -> list[Delivered]:
    """What a run of two tasks commits."""
    given = props(bucket, **more)
    return LocalRun(AivenS3Connector(), given, stored, slots=2).until_idle()


def cut_run(bucket: FilesBucket, stored: Stored, cut: int, form: str) -> list[Delivered]:
    """The same, ended after *cut* records."""
    given = props(bucket, input_format=form)
    return LocalRun(AivenS3Connector(), given, stored, slots=2, stop_after=cut).until_idle()


def offsets_topic(*records: tuple[str, int]) -> Stored:
    """What the offsets topic says that holds *records*: a key as the original writes it, and a count."""
    index = OffsetIndex()
    for number, (key, count) in enumerate(records):
        value = b'{"recordCount":%d}' % count
        index.apply(key.encode(), value, LogPosition(partition=0, offset=number, timestamp=0))
    index.replayed(topic_partitions=1)
    return dict(index.known(NAME))


@pytest.mark.parametrize("order", [1, -1], ids=["one order", "the other order"])
@pytest.mark.parametrize("name", CONTENTS)
def test_its_offsets_are_gone_on_from(bucket: FilesBucket, name: str, order: int):
    """Wherever it was stopped, in either order that its keys may have; in the end the object is done."""
    bucket.put("in/a", CONTENTS[name])
    named = f'"bucket":"{bucket.config.bucket}"', '"objectKey":"in/a"'
    key = f'["{NAME}",{{{",".join(named[::order])}}}]'
    expected = values(run(bucket, {}, input_format=name))
    assert ROWS == len(expected)

    for count in (0, 1, 4, ROWS):
        stored = offsets_topic((key, max(0, count - 1)), (key, count))
        found = run(bucket, stored, input_format=name)

        assert expected[count:] == values(found), count
        assert [partition(bucket, "in/a")] == list(stored)
        offset = stored[partition(bucket, "in/a")]
        assert (ROWS, True) == (offset["recordCount"], offset.get("done"))
        assert [] == run(bucket, stored, input_format=name)


@pytest.mark.parametrize("name", CONTENTS)
def test_its_own_records_have_its_counts(bucket: FilesBucket, name: str):
    """So that the original could go on from ours, too; cut anywhere, no record comes twice."""
    bucket.put("a", CONTENTS[name])
    for cut in (1, 4):
        stored: Stored = {}
        first = cut_run(bucket, stored, cut, name)

        assert cut == stored[partition(bucket, "a")]["recordCount"]
        rest = run(bucket, stored, input_format=name)
        assert ROWS == len(first + rest)
        assert list(range(1, ROWS + 1)) == [
            each.offset["recordCount"] for each in first + rest if each.offset
        ]


def test_what_is_done_costs_no_request_any_more(bucket: FilesBucket):
    """An object of which the count says that all was sent is looked at once."""
    bucket.put("a", CONTENTS["jsonl"])
    stored: Stored = {partition(bucket, "a"): {"recordCount": ROWS}}

    assert [] == run(bucket, stored, input_format="jsonl")
    bucket.proxy.seen.clear()
    assert [] == run(bucket, stored, input_format="jsonl")
    assert [] == bucket.reads("/a")


def test_what_the_plan_itself_writes_has_its_partitions_too(bucket: FilesBucket):
    """The entry of an empty object, and that of one whose ranges are all read."""
    bucket.put("empty", b"")
    bucket.put("ranges", CONTENTS["jsonl"])
    stored: Stored = {}

    assert ROWS == len(run(bucket, stored, input_format="jsonl", files_split_bytes="20"))
    assert {partition(bucket, "empty"), partition(bucket, "ranges")} == set(stored)
    assert all(each["done"] for each in stored.values())
    assert [] == run(bucket, stored, input_format="jsonl", files_split_bytes="20")


def test_packed_objects_are_gone_on_in(bucket: FilesBucket):
    """By the setting, whatever their names say."""
    bucket.put("a", gzip.compress(CONTENTS["jsonl"]))
    bucket.put("b.gz", CONTENTS["jsonl"])
    bucket.put("c", gzip.compress(CONTENTS["bytes"]))
    packed = {"file_compression_type": "gzip"}
    for name, key in (("jsonl", "a"), ("bytes", "c")):
        for count in (3, ROWS):
            stored: Stored = {partition(bucket, key): {"recordCount": count}}
            more = {"input_format": name, "file_name_template": f"^{key}"}
            assert ROWS - count == len(run(bucket, stored, **packed, **more))
            assert stored[partition(bucket, key)]["done"]
    assert ROWS == len(run(bucket, {}, input_format="jsonl", file_name_template="gz"))


def test_records_have_its_key_topic_and_partition(bucket: FilesBucket):
    """The key are the bytes of the object's, on every record, also with the topic of the pattern."""
    bucket.put("in/orders-3-000", b'{"n":1}\n{"n":2}\n')
    bucket.put("in/other", b"{}\n")
    given = props(bucket, input_format="jsonl", file_name_template="{{topic}}-{{partition}}-")
    del given["topic"]
    found = LocalRun(AivenS3Connector(), given, {}).until_idle()

    assert [b"in/orders-3-000"] * 2 == [each.key for each in found]
    assert {"orders"} == {each.topic for each in found}
    task = planned_task(given)
    polled = task.poll()
    task.stop()
    assert polled
    assert {3} == {each.partition for each in polled}
    assert [None] * len(polled) == [each.key_schema for each in polled]


def test_the_key_of_avro_has_its_schema(bucket: FilesBucket):
    """Optional bytes, as there."""
    bucket.put("a", CONTENTS["avro"])
    task = planned_task(props(bucket, input_format="avro"))
    polled = task.poll()
    task.stop()

    assert polled
    assert [OPTIONAL_BYTES] * len(polled) == [each.key_schema for each in polled]


def test_all_below_the_prefix_is_read_whatever_its_name(bucket: FilesBucket):
    """Nothing in a prefix is a glob, and names that begin with a dot are names."""
    for key in ("in[1]*/.hidden/a", "in[1]*/b", "in[1]*x", "in1/c", ".d"):
        bucket.put(key, key.encode())
    more = {"transformer_max_buffer_size": "100"}

    found = run(bucket, {}, aws_s3_prefix="in[1]*", aws_s3_fetch_page_size="1", **more)
    assert [b"in[1]*/.hidden/a", b"in[1]*/b", b"in[1]*x"] == sorted(map(bytes_of, found))
    assert 5 == len(run(bucket, {}, **more))
    later = run(bucket, {}, native_start_key="in[1]*/b", **more)
    assert [b"in[1]*x"] == values(later)


def bytes_of(record: Delivered) -> bytes:
    """Its value."""
    return record.value


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # The hash of t-0 in Java is 112919, and that of the others one more each.
        ("object_hash", {"t-0": 1, "t-1": 0, "t-2": 1, "t-3": 0}),
        ("partition", {"t-0": 0, "t-1": 1, "t-2": 0, "t-3": 1}),
    ],
)
def test_tasks_have_the_objects_that_they_had(
    bucket: FilesBucket, kind: str, expected: dict[str, int]
):
    """By the hash of the key, or by the partition in it; in the order of keys."""
    for key in reversed(expected):
        bucket.put(key, b"x" * (1000 if key == "t-0" else 1))
    connector = AivenS3Connector()
    connector.start(
        props(bucket, distribution_type=kind, file_name_template="{{topic}}-{{partition}}")
    )

    plan = connector.plan(PlanRequest(slots=2, offsets=StoredOffsets({})))

    shares = [[str(each.partition["objectKey"]) for each in share] for share in plan.shares]
    found = {key: slot for slot, share in enumerate(shares) for key in share}
    assert expected == found
    assert [sorted(share) for share in shares] == shares
    explained = connector.explain(PlanRequest(slots=2, offsets=StoredOffsets({})))
    assert found == {each.name.rpartition("/")[2]: each.slots[0] for each in explained}


def test_objects_that_are_gone_are_no_loss(bucket: FilesBucket):
    """The original keeps an entry for each object for ever; no one knows whether they were complete."""
    bucket.put("b", CONTENTS["jsonl"])
    stored: Stored = {partition(bucket, "gone"): {"recordCount": 3}}
    bucket.proxy.seen.clear()

    assert ROWS == len(run(bucket, stored, input_format="jsonl"))
    assert not any("gone" in target for _, target in bucket.proxy.seen)


def test_an_object_that_vanished_half_read_by_us_is_missing(bucket: FilesBucket):
    """And told by the address; files.missing decides."""
    bucket.put("a", CONTENTS["jsonl"])
    stored: Stored = {}
    cut_run(bucket, stored, 2, "jsonl")
    bucket.delete("a")

    with pytest.raises(TaskFailedError, match=r"files\.missing"):
        run(bucket, stored, input_format="jsonl")
    assert [] == run(bucket, stored, input_format="jsonl", files_missing="ignore")


def test_an_overwritten_object_is_no_longer_taken_for_the_old_one(bucket: FilesBucket):
    """Where the original never notices (D6); what to do is said by files.changed."""
    bucket.put("a", CONTENTS["jsonl"])
    stored: Stored = {partition(bucket, "a"): {"recordCount": 3}}
    run(bucket, stored, input_format="jsonl")
    bucket.put("a", b'{"other":1}\n')

    with pytest.raises(TaskFailedError, match=r"files\.changed=reread"):
        run(bucket, stored, input_format="jsonl")
    assert [] == run(bucket, dict(stored), input_format="jsonl", files_changed="ignore")
    assert 1 == len(run(bucket, stored, input_format="jsonl", files_changed="reread"))
    assert [partition(bucket, "a")] == list(stored)


def test_a_line_null_is_a_tombstone(bucket: FilesBucket):
    """As there; json.null says otherwise where it is set."""
    bucket.put("a", b"null\n{}\n")

    assert [None, "{}"] == values(run(bucket, {}, input_format="jsonl"))
    assert ["null", "{}"] == values(run(bucket, {}, input_format="jsonl", json_null="value"))


def test_more_counted_than_there_is_sends_nothing(
    bucket: FilesBucket, caplog: pytest.LogCaptureFixture
):
    """An object that was replaced by a shorter one, as the original leaves it; and this is told."""
    bucket.put("a", CONTENTS["jsonl"])
    stored: Stored = {partition(bucket, "a"): {"recordCount": ROWS + 5}}

    assert [] == run(bucket, stored, input_format="jsonl")
    assert "replaced by a shorter one" in caplog.text


def test_what_comes_after_the_commit_may_be_asked_for(bucket: FilesBucket):
    """By the key of files, on objects that the original had read in part."""
    bucket.put("a", CONTENTS["jsonl"])
    stored: Stored = {partition(bucket, "a"): {"recordCount": 3}}
    given = props(bucket, input_format="jsonl", files_after_commit="delete")
    connector = AivenS3Connector()
    found = LocalRun(connector, given, stored, wait=time.sleep).until_idle()

    assert ROWS - 3 == len(found)
    assert [] == run(bucket, {}, input_format="jsonl")


def test_keys_without_effect_are_told(bucket: FilesBucket, caplog: pytest.LogCaptureFixture):
    """Once, at the start."""
    connector = AivenS3Connector()
    with caplog.at_level(logging.INFO):
        connector.start(props(bucket, ring_buffer_size="10"))

    assert (
        "ring.buffer.size has no effect: What is done is known by committed offsets" in caplog.text
    )


def planned_task(given: dict[str, str]) -> AivenS3Task:
    """The task of a plan for one slot, started."""
    connector = AivenS3Connector()
    connector.start(given)
    offsets = StoredOffsets({})
    plan = connector.plan(PlanRequest(slots=1, offsets=offsets))
    task = AivenS3Task()
    task.initialize(LocalContext(offsets=offsets, splits=plan.shares[0]))
    task.start(given)
    return task
