"""The files connector on S3: every record once, wherever it was stopped and whatever the store does."""

from __future__ import annotations

import gzip
import io
import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from connectors.stores.files_bucket import FilesBucket, Stored, values
from connectors.stores.s3_proxy import Answer, Fault
from connectors.vetoes import veto
from headrace.connect import (
    OffsetsError,
    PlanRequest,
    RetriableError,
    SourceOffset,
    SourcePartition,
    TaskFailedError,
)
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.task import FilesTask
from headrace.testing.task_runs import LocalContext, LocalRun, StoredOffsets
from sources.avro_files import avro_file

ROWS = 7
SCHEMA = {"type": "record", "name": "Row", "fields": [{"name": "n", "type": "int"}]}


def parquet() -> bytes:
    """Rows in row groups of three."""
    out = io.BytesIO()
    table = pa.table({"n": range(ROWS), "text": [f"row {n}" for n in range(ROWS)]})
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue()


JSONL = b"".join(b'{"n":%d}\n' % n for n in range(ROWS))
CSV = b"n,text\n" + b"".join(b'%d,"a ""b""\nc"\n' % n for n in range(ROWS))
CONTENTS = {
    "a.jsonl": JSONL,
    "a.csv": CSV,
    "a.avro": avro_file(SCHEMA, [{"n": n} for n in range(ROWS)]),
    "a.parquet": parquet(),
    "a.txt": JSONL.removesuffix(b"\n"),
    "a.jsonl.gz": gzip.compress(JSONL),
    "a.csv.zst": zstandard.compress(CSV),
    "packed.jsonl": gzip.compress(JSONL),
}
# It does not pack well, so that a packed one has a middle, too.
BIG = b"".join(
    b'{"n":%d,"text":"%s"}\n' % (n, sha256(b"%d" % n).hexdigest().encode()) for n in range(30_000)
)
BIG_LINES = BIG.decode().splitlines()


def on_disk(folder: Path, name: str, content: bytes) -> list[object]:
    """What the same file is as records when it lies on local disk."""
    (folder / name).write_bytes(content)
    props = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0"}
    return values(LocalRun(FilesConnector(), props, {}).until_idle())


@pytest.mark.parametrize("name", CONTENTS)
def test_every_record_once_wherever_it_was_stopped(tmp_path: Path, bucket: FilesBucket, name: str):
    """The records are those of the same file on disk; a finished object is done under its version."""
    version = bucket.put(name, CONTENTS[name])
    expected = on_disk(tmp_path, name, CONTENTS[name])
    assert ROWS == len(expected)

    for cut in (0, 1, 4, ROWS):
        stored: Stored = {}
        first = bucket.run(stored, stop_after=cut) if cut else []
        rest = bucket.run(stored)

        assert expected == values(first + rest), cut
        assert [bucket.partition(name)] == list(stored)
        offset = stored[bucket.partition(name)]
        assert (version, len(CONTENTS[name])) == (offset["version"], offset["size"])
        assert offset["done"]
        assert "checked" not in offset
        assert [] == bucket.run(stored)


def test_bytes_go_on_at_the_piece_they_stopped_in(bucket: FilesBucket):
    """Pieces behind the first ones are asked for alone."""
    bucket.put("a.bin", b"abcdefg")
    more = {"files_format": "bytes", "files_bytes_per_record": "3"}
    stored: Stored = {}

    assert [b"abc"] == values(bucket.run(stored, stop_after=1, **more))
    assert [b"def", b"g"] == values(bucket.run(stored, **more))


def test_text_goes_on_with_one_request_from_its_byte_on(bucket: FilesBucket):
    """With the packing told, nothing before that byte is asked for again."""
    bucket.put("big.jsonl", BIG)
    more = {"files_compression": "none"}
    stored: Stored = {}
    first = bucket.run(stored, stop_after=20_000, **more)
    anchor = stored[bucket.partition("big.jsonl")]["anchor"]
    assert isinstance(anchor, int)
    sizes: list[int] = []
    bucket.proxy.fail(Fault("GET", "/big.jsonl", times=9, change=noting(sizes)))

    rest = bucket.run(stored, **more)

    assert BIG_LINES == values(first + rest)
    assert [len(BIG) - anchor] == sizes


def test_a_longer_object_is_read_on_where_the_old_one_ended(bucket: FilesBucket):
    """Also where that had no line end behind its last record; what that grew into is refused."""
    more = {"files_changed": "tail", "files_compression": "none"}
    stored: Stored = {}
    bucket.put("a.txt", b"one\ntwo")
    assert ["one", "two"] == values(bucket.run(stored, **more))

    version = bucket.put("a.txt", b"one\ntwo\r\nthree\nfo")

    assert ["three", "fo"] == values(bucket.run(stored, **more))
    entry = stored[bucket.partition("a.txt")]
    assert (version, 4, True) == (entry["version"], entry["recordCount"], entry["done"])
    bucket.put("a.txt", b"one\ntwo\r\nthree\nfour\n")
    with pytest.raises(TaskFailedError, match="Its last record was sent without a line end"):
        bucket.run(stored, **more)


def test_an_object_waits_for_its_marker(bucket: FilesBucket):
    """Which a store may list far behind it, and which is asked for then."""
    more = {"files_complete_marker": "zz-{name}"}
    stored: Stored = {}
    bucket.put("in/a.txt", b"one\n")
    assert [] == bucket.run(stored, "in/", **more)

    bucket.put("in/zz-a.txt", b"")

    assert ["one"] == values(bucket.run(stored, "in/a*", **more))
    assert [bucket.partition("in/a.txt")] == list(stored)


def noting(sizes: list[int]) -> Callable[[Answer], Answer]:
    """Notes how long each answer is."""

    def note(answer: Answer) -> Answer:
        sizes.append(len(answer.body))
        return answer

    return note


def test_an_empty_object_is_done_and_a_folder_marker_is_none(bucket: FilesBucket):
    """Neither has a record; only the first is a file."""
    bucket.put("a.jsonl", b"")
    bucket.put("folder/", b"")
    stored: Stored = {}

    assert [] == bucket.run(stored, files_recursive="true")
    assert [bucket.partition("a.jsonl")] == list(stored)


@pytest.mark.parametrize(
    ("selected", "more", "expected"),
    [
        ([""], {}, ["a.txt", "data.txt"]),
        (["data"], {}, ["data.txt", "data/b.txt", "data/deeper.md"]),
        (["data/"], {}, ["data/b.txt", "data/deeper.md"]),
        (
            ["data/"],
            {"files_recursive": "true"},
            ["data/b.txt", "data/deep/c.txt", "data/deeper.md"],
        ),
        (["data/deep"], {}, ["data/deep/c.txt", "data/deeper.md"]),
        (["data/*.txt", "data/**/c.*", "a.txt"], {}, ["a.txt", "data/b.txt", "data/deep/c.txt"]),
        (["data/.hidden"], {}, ["data/.hidden/d.txt"]),
    ],
)
def test_prefixes_and_globs_select(
    bucket: FilesBucket, selected: list[str], more: dict[str, str], expected: list[str]
):
    """By exact text, in pages of whatever size; each object once."""
    for key in (
        "a.txt",
        "data.txt",
        "data/",
        "data/b.txt",
        "data/deep/c.txt",
        "data/deeper.md",
        "data/.hidden/d.txt",
        ".e.txt",
    ):
        bucket.put(key, key.encode() if not key.endswith("/") else b"")

    found = bucket.run({}, *selected, files_format="lines", s3_page_size="2", **more)

    assert expected == sorted(map(str, values(found)))


def test_odd_keys_are_read_and_named_as_they_are(bucket: FilesBucket):
    """An offset names the key byte for byte; so does the topic, as far as it can."""
    keys = ["a//b.txt", "/lead.txt", "per%20cent #1.txt", "t\u00e4b\t\U0001f600.txt", "x/y/"]
    for key in keys:
        bucket.put(key, key.encode())
    stored: Stored = {}

    bucket.run(stored, files_recursive="true", files_format="lines")

    assert {bucket.partition(key) for key in keys} == set(stored)
    assert [] == bucket.run(stored, files_recursive="true", files_format="lines")
    FilesConnector().validate_offsets({}, stored)


def test_every_plan_lists_once_and_looks_at_nothing(bucket: FilesBucket):
    """What is done costs no request of its own."""
    for number in range(5):
        bucket.put(f"in/{number}.txt", b"one\n")
    stored: Stored = {}
    bucket.run(stored, "in/*.txt", "in/4", "in/4.txt", s3_page_size="2")
    bucket.proxy.seen.clear()

    assert [] == bucket.run(stored, "in/*.txt", "in/4", "in/4.txt", s3_page_size="2")

    assert 3 == len(bucket.proxy.seen)
    assert all("list-type=2" in target for _, target in bucket.proxy.seen)


def test_nothing_selected_is_told_once(bucket: FilesBucket, caplog: pytest.LogCaptureFixture):
    """With what may be the reason."""
    bucket.put("data/deep/a.txt", b"one\n")
    connector = FilesConnector()
    connector.start(bucket.props("data/", "none*"))

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            plan = connector.plan(PlanRequest(slots=1, offsets=StoredOffsets({})))

    assert not plan.has_work()
    told = [record.getMessage() for record in caplog.records]
    assert [bucket.address("data/"), bucket.address("none*")] == [
        each.split(": ")[0] for each in told
    ]
    assert "files.recursive=true" in told[0]
    assert "files.recursive=true" not in told[1]


def test_ranges_of_an_object_are_read_apart(bucket: FilesBucket):
    """Each line once, whichever byte a range begins at, and the entry of the whole in the end."""
    bucket.put("big.jsonl", BIG)
    more = {"files_split_bytes": "1000003", "files_compression": "none"}
    stored: Stored = {}
    first = bucket.run(stored, stop_after=12_000, **more)
    assert {"filename", "from", "to"} == set(next(iter(stored)))

    rest = bucket.run(stored, **more)

    assert sorted(BIG_LINES) == sorted(map(str, values(first + rest)))
    assert [bucket.partition("big.jsonl")] == list(stored)
    assert 30_000 == stored[bucket.partition("big.jsonl")]["recordCount"]


class TestChanged:
    """An object that is overwritten or removed."""

    @pytest.mark.parametrize("cut", [2, ROWS])
    @pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
    def test_an_overwritten_object_is_judged_by_its_version(
        self, bucket: FilesBucket, caplog: pytest.LogCaptureFixture, name: str, cut: int
    ):
        """Even where it begins with what was sent; the policy decides."""
        stored: Stored = {}
        bucket.put(name, CONTENTS[name])
        bucket.run(stored, stop_after=cut)
        other = CONTENTS[name] if name != "a.jsonl" else JSONL + b'{"n":7}\n'
        other = gzip.compress(JSONL + b"{}\n") if name == "a.jsonl.gz" else other
        if name == "a.parquet":
            stored[bucket.partition(name)] = {**stored[bucket.partition(name)], "version": "other"}
        bucket.put(name, other)

        with pytest.raises(TaskFailedError, match=r"files\.changed=reread") as caught:
            bucket.run(dict(stored))
        with caplog.at_level(logging.WARNING):
            assert [] == bucket.run(dict(stored), files_changed="ignore")
        again = dict(stored)
        assert ROWS + (name != "a.parquet") == len(bucket.run(again, files_changed="reread"))

        assert str(caught.value).startswith(bucket.address(name))
        assert "left alone" in caplog.text
        assert [] == bucket.run(again, files_changed="reread")

    @pytest.mark.parametrize("name", ["big.jsonl", "big.jsonl.gz", "big.txt.zst", "big.parquet"])
    def test_one_that_changes_while_it_is_read_is_left_to_the_next_plan(
        self, bucket: FilesBucket, caplog: pytest.LogCaptureFixture, name: str
    ):
        """What was sent before stays sent under the old version, and nothing is mixed."""
        data = big(name)
        bucket.put(name, data)
        stored: Stored = {}
        # The connection breaks in the middle, and the next request asks for a version that is no more.
        change = overwriting(bucket, name)
        if name == "big.parquet":
            # Of the first three requests are its ends and its footer.
            bucket.proxy.fail(Fault("GET", f"/{name}", times=3))
            bucket.proxy.fail(Fault("GET", f"/{name}", change=change))
        else:
            bucket.proxy.fail(Fault("GET", f"/{name}", cut_at=len(data) * 3 // 4, change=change))

        with caplog.at_level(logging.WARNING):
            found = bucket.local_run(stored, files_batch_max_bytes="4096")
            with pytest.raises(TaskFailedError, match="replaced"):
                found.until_idle()

        assert 0 < len(found.delivered) < len(BIG_LINES)
        assert "The next plan decides" in caplog.text
        assert not stored[bucket.partition(name)].get("done")

    @pytest.mark.parametrize("policy", ["reread", "ignore"])
    def test_what_is_sent_then_of_its_new_version_is_the_policys(
        self, bucket: FilesBucket, policy: str
    ):
        """All of it, once, or nothing; in the same run, which goes on."""
        bucket.put("big.jsonl", BIG)
        stored: Stored = {}
        change = overwriting(bucket, "big.jsonl")
        bucket.proxy.fail(Fault("GET", "/big.jsonl", cut_at=len(BIG) // 2, change=change))
        more = {"files_changed": policy, "files_batch_max_bytes": "4096"}

        found = values(bucket.run(stored, **more))

        new = JSONL.decode().splitlines() if policy == "reread" else []
        old = found[: len(found) - len(new)]
        assert 0 < len(old) < len(BIG_LINES)
        assert BIG_LINES[: len(old)] + new == found
        assert (policy == "reread") == stored[bucket.partition("big.jsonl")].get("done", False)
        assert [] == bucket.run(stored, **more)

    @pytest.mark.parametrize("policy", ["fail", "ignore"])
    @pytest.mark.parametrize("name", ["big.jsonl", "big.jsonl.gz", "big.parquet"])
    def test_one_that_is_removed_while_it_is_read_is_missing(
        self, bucket: FilesBucket, name: str, policy: str
    ):
        """It is no end of data, and not done; files.missing decides."""
        data = big(name)
        bucket.put(name, data)
        stored: Stored = {}

        def remove(answer: Answer) -> Answer:
            bucket.delete(name)
            return answer

        if name == "big.parquet":
            # Of the first three requests are its ends and its footer.
            bucket.proxy.fail(Fault("GET", f"/{name}", times=3))
            bucket.proxy.fail(Fault("GET", f"/{name}", change=remove))
        else:
            bucket.proxy.fail(Fault("GET", f"/{name}", cut_at=len(data) * 3 // 4, change=remove))
        more = {"files_missing": policy, "files_batch_max_bytes": "4096"}
        run = bucket.local_run(stored, **more)
        if policy == "fail":
            with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
                run.until_idle()
        else:
            run.until_idle()

        assert 0 < len(run.delivered) < len(BIG_LINES)
        assert not stored[bucket.partition(name)].get("done")

    def test_one_that_comes_late_and_sorts_before_all_others_is_read(self, bucket: FilesBucket):
        """While another one is half read, and after it is done."""
        bucket.put("b.jsonl", JSONL)
        stored: Stored = {}
        assert 2 == len(bucket.run(stored, stop_after=2))
        bucket.put("a.jsonl", JSONL)
        assert 2 * ROWS - 2 == len(bucket.run(stored))
        bucket.put("0.jsonl", JSONL)

        assert ROWS == len(bucket.run(stored))
        assert [] == bucket.run(stored)

    @pytest.mark.parametrize(
        "name", ["a.jsonl", "a.csv.zst", "a.avro", "a.parquet", "packed.jsonl"]
    )
    def test_one_that_changed_before_it_was_opened_is_left_to_the_next_plan(
        self, bucket: FilesBucket, name: str
    ):
        """The slot notices by the condition of its first request."""
        bucket.put(name, CONTENTS[name])
        task = planned_task(bucket)
        bucket.put(name, b"something else")

        assert task.poll() is None
        assert not task.update_offsets({})
        task.stop()

    def test_a_half_read_object_that_vanished_is_missing(self, bucket: FilesBucket):
        """files.missing decides; one that was finished may go, and one that is not selected any more stays."""
        stored: Stored = {}
        bucket.put("a.jsonl", JSONL)
        bucket.run(stored, stop_after=2)
        assert [] == bucket.run(stored, "other")
        bucket.delete("a.jsonl")

        with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
            bucket.run(stored)
        assert [] == bucket.run(stored, files_missing="ignore")
        bucket.put("a.jsonl", JSONL)
        bucket.run(stored)
        bucket.delete("a.jsonl")
        assert [] == bucket.run(stored)

    def test_one_that_vanishes_before_it_is_opened_is_left_to_the_next_plan(
        self, bucket: FilesBucket
    ):
        """It is no end of data."""
        bucket.put("a.jsonl", JSONL)
        task = planned_task(bucket)
        bucket.delete("a.jsonl")

        assert task.poll() is None
        task.stop()


def big(name: str) -> bytes:
    """An object of that name with as many records as there are lines in ``BIG``."""
    if name == "big.parquet":
        out = io.BytesIO()
        pq.write_table(pa.table({"text": BIG_LINES}), out, row_group_size=3000, compression="none")
        return out.getvalue()
    if name == "big.avro":
        return avro_file(SCHEMA, [{"n": n} for n in range(len(BIG_LINES))])
    return {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)(BIG)


def overwriting(bucket: FilesBucket, name: str) -> Callable[[Answer], Answer]:
    """Overwrites the object as soon as it has been asked for."""

    def overwrite(answer: Answer) -> Answer:
        bucket.put(name, CONTENTS["a.parquet"] if name.endswith("parquet") else JSONL)
        return answer

    return overwrite


def planned_task(bucket: FilesBucket, stored: Stored | None = None, **more: str) -> FilesTask:
    """The task of a plan for one slot, started."""
    props = bucket.props(**more)
    connector = FilesConnector()
    connector.start(props)
    offsets = StoredOffsets(stored or {})
    plan = connector.plan(PlanRequest(slots=1, offsets=offsets))
    task = FilesTask()
    task.initialize(LocalContext(offsets=offsets, splits=plan.shares[0]))
    task.start(props)
    return task


class TestBadMoments:
    """What a server does on bad days."""

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(status=503, code="SlowDown", times=2),
            Fault(cut_at=100, times=2),
            Fault(cut_at=150_000, times=2),
            Fault(change=lambda answer: Answer(answer.status, answer.headers, answer.body[:-9])),
        ],
        ids=["503", "cut", "cut later", "wrong length"],
    )
    @pytest.mark.parametrize("name", ["big.jsonl", "big.jsonl.gz", "big.parquet"])
    def test_reading_goes_on_at_the_failed_byte(self, bucket: FilesBucket, fault: Fault, name: str):
        """Every record once; a short answer is no end."""
        bucket.put(name, big(name))
        bucket.proxy.fail(Fault("GET", f"/{name}", **{k: v for k, v in vars(fault).items() if v}))

        assert len(BIG_LINES) == len(bucket.run({}))

    @pytest.mark.parametrize("name", ["big.jsonl", "big.jsonl.gz", "big.parquet", "big.avro"])
    def test_a_store_that_is_away_for_longer_is_waited_for(self, bucket: FilesBucket, name: str):
        """The task says so, and goes on behind what it has returned as soon as the store is back."""
        data = big(name)
        bucket.put(name, data)
        task = planned_task(bucket, files_batch_max_bytes="4096")
        # In the middle of its rows: of Parquet the first three requests are the ends and the footer.
        before = Fault("GET", f"/{name}", times=3)
        broken = Fault("GET", f"/{name}", cut_at=len(data) // 2)
        bucket.proxy.fail(before if name == "big.parquet" else broken)
        bucket.proxy.fail(Fault("GET", f"/{name}", status=503, code="SlowDown", times=5))

        counts: list[object] = []
        away: list[str] = []
        while len(away) < 20:
            try:
                polled = task.poll()
            except RetriableError as error:
                away.append(str(error))
                continue
            if polled is None:
                break
            for batch in polled:
                counts += [batch.offset_at(row)["recordCount"] for row in range(len(batch))]
        task.stop()

        assert list(range(1, len(BIG_LINES) + 1)) == counts
        assert away
        assert all(bucket.address(name) in each for each in away)

    def test_a_listing_that_fails_is_tried_again_later_and_never_empty(self, bucket: FilesBucket):
        """Also for a half read object, which is not taken for vanished."""
        stored: Stored = {}
        bucket.put("a.jsonl", JSONL)
        bucket.run(stored, stop_after=2)
        bucket.proxy.fail(Fault("GET", "list-type", times=99, status=503, code="SlowDown"))

        with pytest.raises(RetriableError, match="ListObjectsV2"):
            bucket.run(stored)
        bucket.proxy.forget()
        bucket.proxy.fail(Fault("HEAD", "", times=99, status=503, code="SlowDown"))
        with pytest.raises(RetriableError, match="HeadObject"):
            bucket.run(stored, "other")

    def test_what_does_not_pass_names_what_to_check_and_no_secret(self, bucket: FilesBucket):
        """A bucket that is missing is for a person to mend."""
        props = {**bucket.props(), "files.path": "s3://no-such-bucket/"}

        with pytest.raises(TaskFailedError, match=r"no-such-bucket.*Check the bucket") as caught:
            LocalRun(FilesConnector(), props, {}).until_idle()
        assert "secret" not in str(caught.value)


class TestOffsets:
    """What people may set."""

    @pytest.mark.parametrize(
        "offset",
        [{"recordCount": 3}, {"done": True}, {"anchor": 8, "recordCount": 1, "version": "any"}],
    )
    def test_an_offset_of_an_object_is_accepted(self, offset: SourceOffset):
        """Its version is the store's own word."""
        partition = SourcePartition(filename="s3://b/a.txt")

        assert None is veto(FilesConnector(), {partition: offset})

    @pytest.mark.parametrize(
        ("address", "offset", "told"),
        [
            ("s3://b/", {}, "object by its address"),
            ("s3x://b/a", {}, "object by its address"),
            ("a/b", {}, "absolute path"),
            ("s3://b/a", {"anchor": 1, "checked": 1, "checksum": 1}, "known by its version"),
            ("/a", {"version": "any"}, "the form that headrace writes"),
        ],
    )
    def test_what_a_task_could_not_resume_from_is_refused(
        self, address: str, offset: SourceOffset, told: str
    ):
        """With the reason."""
        partition = SourcePartition(filename=address)

        with pytest.raises(OffsetsError, match=told):
            FilesConnector().validate_offsets({}, {partition: offset})

    def test_they_are_obeyed(self, bucket: FilesBucket):
        """So many records are skipped; what is done is left alone; a byte behind the end is told."""
        bucket.put("a.jsonl", JSONL)
        partition = bucket.partition("a.jsonl")

        assert 4 == len(bucket.run({partition: {"recordCount": 3}}))
        assert [] == bucket.run({partition: {"done": True}})
        with pytest.raises(TaskFailedError, match="byte 999, but the object has 56"):
            bucket.run({partition: {"anchor": 999}})
