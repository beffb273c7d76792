"""A mark over the objects of an S3 bucket."""

from __future__ import annotations

import pytest

from connectors.stores.files_bucket import FilesBucket, Stored, values
from headrace.connect import SourcePartition


def put(bucket: FilesBucket, *numbers: int) -> None:
    """Put objects of two lines."""
    for number in numbers:
        bucket.put(f"in/{number:03}.txt", f"{number}.0\n{number}.1\n".encode())


def lines(*numbers: int) -> list[str]:
    """What is in them."""
    return [f"{number}.{line}" for number in numbers for line in range(2)]


@pytest.mark.parametrize("check", ["0", "3600000"])
def test_every_record_once_wherever_it_dies(bucket: FilesBucket, check: str):
    """While objects come, also within the look-back."""
    more = {"files_tracking": "ordered", "files_lookback": "2", "files_late_check_ms": check}
    stored: Stored = {}
    read = list[object]()
    put(bucket, *range(0, 12, 2))
    for death in range(1, 6):
        read += values(bucket.run(stored, "in/", stop_after=death, **more))
        put(bucket, 12 + death)
    read += values(bucket.run(stored, "in/", stop_after=None, **more))
    put(bucket, 15, 18)
    read += values(bucket.run(stored, "in/", stop_after=None, **more))

    assert sorted(lines(*range(0, 12, 2), *range(13, 19))) == sorted(map(str, read))
    mark = SourcePartition(mark=bucket.address())
    assert bucket.address("in/016.txt") == stored.pop(mark)["key"]
    assert {bucket.partition(f"in/{number:03}.txt") for number in (17, 18)} == stored.keys()


def test_the_store_is_asked_for_what_is_behind_the_mark(bucket: FilesBucket):
    """And not for what it has passed."""
    more = {"files_tracking": "ordered", "files_lookback": "0", "files_late_check_ms": "0"}
    stored: Stored = {}
    put(bucket, *range(5))
    bucket.run(stored, "in/", stop_after=None, **more)
    bucket.proxy.seen.clear()
    put(bucket, 2, 5)

    assert lines(5) == values(bucket.run(stored, "in/", stop_after=None, **more))

    listings = [target for _, target in bucket.proxy.seen if "list-type=2" in target]
    assert all("start-after=in%2F00" in each for each in listings)
    assert "start-after=in%2F005.txt" in listings[-1]
