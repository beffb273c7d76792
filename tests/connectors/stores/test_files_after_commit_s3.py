"""Objects of S3 that are deleted, moved, tagged or in quarantine: always of the version that was read."""

from __future__ import annotations

import gzip

import pytest

from connectors.stores.after_commit_suite import DELETE, AfterCommitSuite
from connectors.stores.files_bucket import FilesBucket
from headrace.connect import SourceOffset
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import ErrorPolicy
from task.local_loop import Rounds


class TestAfterCommit(AfterCommitSuite):
    """A bucket, in the suite of all stores."""

    @pytest.fixture
    def place(self, bucket: FilesBucket) -> FilesBucket:
        """See the suite."""
        return bucket


def test_an_object_that_comes_back_as_it_was_goes_all_the_same(bucket: FilesBucket):
    """Once it is there again; its version says that it is the one that was read."""
    bucket.put("in/a.txt", b"one\n")
    stored = bucket.read_all("in/", **DELETE)
    bucket.delete("in/a.txt")
    assert [] == bucket.run(stored, "in/", **DELETE)
    bucket.put("in/a.txt", b"one\n")

    assert [] == bucket.run(stored, "in/", **DELETE)

    assert ([], {}) == (bucket.listed(), stored)


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
