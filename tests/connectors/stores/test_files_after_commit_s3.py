"""Objects of S3 that are deleted, moved, tagged or in quarantine: always of the version that was read."""

from __future__ import annotations

import gzip
import logging

import pytest

from connectors.stores.files_bucket import FilesBucket, Stored, values
from connectors.stores.s3_owner import S3Owner
from connectors.stores.s3_proxy import Fault
from headrace.connect import SourceOffset
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.slot.work import ErrorPolicy
from slot.local_loop import Rounds

DELETE = {"files_after_commit": "delete"}
TAG = {"files_after_commit": "tag", "files_tag": "read=yes,by=headrace"}


def keys(bucket: FilesBucket, client: S3Owner) -> list[str]:
    """What is in the bucket."""
    found = client.list_objects_v2(Bucket=bucket.config.bucket)
    return [each["Key"] for each in found.get("Contents", ())]


def tags(bucket: FilesBucket, client: S3Owner, key: str) -> dict[str, str]:
    """An object's tags."""
    found = client.get_object_tagging(Bucket=bucket.config.bucket, Key=key)
    return {each["Key"]: each["Value"] for each in found["TagSet"]}


def move(bucket: FilesBucket) -> dict[str, str]:
    """The settings that move to ``done/``."""
    return {"files_after_commit": "move", "files_move_to": bucket.address("done/")}


def read_all(bucket: FilesBucket, *selected: str, **more: str) -> Stored:
    """What is stored when a process dies right after its last commit."""
    stored: Stored = {}
    local = bucket.local_run(stored, *selected, **more)
    local._connector.start(local._props)
    for task in list(local._tasks()):
        local._drain(task)
    return stored


def test_objects_are_deleted_once_they_are_committed(bucket: FilesBucket, client: S3Owner):
    """What comes under the same key later is a new object."""
    bucket.put("in/a.txt", b"one\ntwo\n")
    bucket.put("in/empty.txt", b"")
    bucket.put("other.txt", b"other\n")
    stored: Stored = {}

    assert ["one"] == values(bucket.run(stored, "in/", stop_after=1, **DELETE))
    assert "in/a.txt" in keys(bucket, client)
    assert ["two"] == values(bucket.run(stored, "in/", **DELETE))

    assert (["other.txt"], {}) == (keys(bucket, client), stored)
    bucket.put("in/a.txt", b"three\n")
    assert ["three"] == values(bucket.run(stored, "in/", **DELETE))


def test_objects_are_moved_with_what_is_below_their_prefix(bucket: FilesBucket, client: S3Owner):
    """Odd keys, too."""
    for key in ("in/a.txt", "in/x//a.txt", "in/x/%20 #.txt"):
        bucket.put(key, key.encode())
    stored: Stored = {}

    bucket.run(stored, "in/", files_recursive="true", **move(bucket))

    assert ["done/a.txt", "done/x/%20 #.txt", "done/x//a.txt"] == keys(bucket, client)
    assert {} == stored


def test_objects_are_tagged_and_not_read_again(bucket: FilesBucket, client: S3Owner):
    """Their entries stay, without the note."""
    bucket.put("in/a.txt", b"one\n")
    stored: Stored = {}

    assert ["one"] == values(bucket.run(stored, "in/", **TAG))
    assert [] == bucket.run(stored, "in/", **TAG)

    assert {"read": "yes", "by": "headrace"} == tags(bucket, client, "in/a.txt")
    entry = stored[bucket.partition("in/a.txt")]
    assert entry["done"]
    assert "cleanup" not in entry


@pytest.mark.parametrize("action", ["delete", "move", "tag"])
def test_a_kill_around_the_action_is_no_harm(bucket: FilesBucket, client: S3Owner, action: str):
    """Before it, or between it and the commit that says so."""
    more = {"delete": DELETE, "move": move(bucket), "tag": TAG}[action]
    bucket.put("in/a.txt", b"one\n")
    stored = read_all(bucket, "in/", **more)
    assert ["in/a.txt"] == keys(bucket, client)
    assert "pending" == stored[bucket.partition("in/a.txt")]["cleanup"]
    before = dict(stored)

    assert [] == bucket.run(stored, "in/", **more)
    assert [] == bucket.run(before, "in/", **more)

    # Who did not delete it cannot know whether it comes back.
    (kept,) = before.values()
    assert kept["done"]
    assert "cleanup" not in kept
    assert stored == (before if action == "tag" else {})
    assert {"delete": [], "move": ["done/a.txt"], "tag": ["in/a.txt"]}[action] == keys(
        bucket, client
    )


@pytest.mark.parametrize("action", ["delete", "move", "tag"])
def test_an_object_that_was_overwritten_is_left_and_told(
    bucket: FilesBucket, client: S3Owner, caplog: pytest.LogCaptureFixture, action: str
):
    """The action asks for the version that was read."""
    more = {"delete": DELETE, "move": move(bucket), "tag": TAG}[action]
    bucket.put("in/a.txt", b"one\n")
    stored = read_all(bucket, "in/", **more)
    bucket.put("in/a.txt", b"ONE\n")

    with caplog.at_level(logging.WARNING):
        assert [] == bucket.run(stored, "in/", files_changed="ignore", **more)

    assert ["in/a.txt"] == keys(bucket, client)
    assert {} == tags(bucket, client, "in/a.txt")
    assert "cleanup" not in stored[bucket.partition("in/a.txt")]
    assert "left as it is" in caplog.text


def test_a_failing_action_is_tried_again_and_holds_up_nothing(
    bucket: FilesBucket, client: S3Owner, caplog: pytest.LogCaptureFixture
):
    """New objects are read meanwhile, and in the end the old one goes."""
    bucket.put("in/a.txt", b"one\n")
    stored: Stored = {}
    bucket.proxy.fail(Fault("DELETE", "/in/a.txt", times=99, status=403, code="AccessDenied"))

    with caplog.at_level(logging.WARNING):
        assert ["one"] == values(bucket.run(stored, "in/", **DELETE))
        bucket.put("in/b.txt", b"two\n")
        assert ["two"] == values(bucket.run(stored, "in/", **DELETE))

    assert "files.after.commit=delete: It failed for 1 file" in caplog.text
    assert bucket.address("in/a.txt") in caplog.text
    assert ["in/a.txt"] == keys(bucket, client)
    bucket.proxy.forget()
    assert [] == bucket.run(stored, "in/", **DELETE)
    assert ([], {}) == (keys(bucket, client), stored)


LINES = b"".join(b'{"n":%d,"salt":"%s"}\n' % (n, bytes([65 + n]) * n) for n in range(26))
DAMAGED = gzip.compress(LINES)[:-9]


def rounds(bucket: FilesBucket, **more: str) -> Rounds:
    """Rounds that pass over what is bad."""
    given = {"name": "c", "files_batch_max_rows": "5", **more}
    policy = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
    return Rounds(FilesConnector, bucket.props("in/", **given), policy)


def test_a_damaged_object_is_in_quarantine_until_its_offset_is_altered(bucket: FilesBucket):
    """It costs no request besides the listing then."""
    key = "in/a.jsonl.gz"
    version = bucket.put(key, DAMAGED)
    bucket.put("in/b.jsonl", b'{"n":99}\n')
    played = rounds(bucket)
    played.play()
    assert ([None], 1) == (played.values("dead"), played.quarantined)
    sent = len(played.values("t"))
    entry = played.stored[bucket.partition(key)]
    assert version == entry["version"]
    assert "cut off" in str(entry["quarantined"])
    bucket.proxy.seen.clear()

    played.play()
    assert [] == bucket.reads(key)
    assert sent == len(played.values("t"))

    released: dict[SourcePartition, SourceOffset] = {bucket.partition(key): {"recordCount": 0}}
    FilesConnector().validate_offsets({}, released)
    played.stored.update(released)
    played.play()
    assert 2 == played.quarantined
    assert 2 * sent - 1 == len(played.values("t"))


@pytest.mark.parametrize("policy", ["fail", "ignore", "reread"])
def test_a_whole_object_in_the_place_of_a_damaged_one_is_for_files_changed(
    bucket: FilesBucket, policy: str
):
    """Records of the one before were sent."""
    key = "in/a.txt.gz"
    bucket.put(key, gzip.compress(LINES) + DAMAGED)
    played = rounds(bucket, files_changed=policy)
    played.play()
    sent = len(played.values("t"))
    assert sent >= 26
    bucket.put(key, gzip.compress(LINES))

    if policy == "fail":
        with pytest.raises(TaskFailedError, match=r"files\.changed=reread"):
            played.play()
    else:
        played.play()

    assert sent + (26 if policy == "reread" else 0) == len(played.values("t"))
    entry = played.stored[bucket.partition(key)]
    assert ("quarantined" in entry) == (policy != "reread")
