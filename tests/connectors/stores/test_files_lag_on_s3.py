"""How many bytes objects of a store have behind their offsets, and what it costs to ask."""

from __future__ import annotations

import gzip
import logging

import pytest

from connectors.stores.files_bucket import FilesBucket, Stored
from connectors.stores.s3_proxy import Fault
from connectors.stores.test_aiven_s3 import props as props_of_aiven
from headrace.connect import RetriableError, SourcePartition
from headrace.connectors.files.aiven.connector import AivenS3Connector
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.lagging import MOST_REQUESTED

FOUR = b"1234567\n" * 4


def lags(bucket: FilesBucket, stored: Stored, **more: str) -> dict[str, int]:
    """What is told of each key."""
    told = FilesConnector().lag(bucket.props(**more), stored)
    return {str(each["filename"]).removeprefix(bucket.root): lag for each, lag in told.items()}


def test_only_what_is_half_read_is_asked_for(bucket: FilesBucket):
    """Two requests for one whose first bytes tell how it is packed, one where a setting says it."""
    bucket.put("a.jsonl", FOUR)
    stored: Stored = {}
    bucket.run(stored)
    bucket.put("b.txt", FOUR)
    bucket.run(stored, stop_after=1)
    bucket.proxy.seen.clear()

    assert {"a.jsonl": 0, "b.txt": 24} == lags(bucket, stored)
    assert ["HEAD", "GET"] == [method for method, _ in bucket.proxy.seen]
    bucket.proxy.seen.clear()
    assert {"a.jsonl": 0, "b.txt": 24} == lags(bucket, stored, files_compression="none")
    assert ["HEAD"] == [method for method, _ in bucket.proxy.seen]


def test_what_is_not_the_object_that_was_begun_is_left_out(bucket: FilesBucket):
    """Gone, another version, and one that turns out to be compressed."""
    stored: Stored = {}
    packed = gzip.compress(FOUR)
    for key, content in (("a.txt", FOUR), ("b.txt", FOUR), ("c.txt", packed)):
        bucket.put(key, content)
        bucket.run(stored, key, stop_after=1)
    bucket.delete("a.txt")
    bucket.put("b.txt", FOUR * 2)

    assert {} == lags(bucket, stored)


def test_few_objects_are_asked_for_at_a_time(bucket: FilesBucket, caplog: pytest.LogCaptureFixture):
    """Those that come first by their names; how many are left out is logged."""
    caplog.set_level(logging.INFO)
    stored: Stored = {}
    for number in range(MOST_REQUESTED + 2):
        stored[bucket.partition(f"{number:03}.txt")] = {"recordCount": 0}
    bucket.put("000.txt", FOUR)
    bucket.put(f"{MOST_REQUESTED:03}.txt", FOUR)
    bucket.proxy.seen.clear()

    assert {"000.txt": 32} == lags(bucket, stored, files_compression="none")
    assert MOST_REQUESTED == len(bucket.proxy.seen)
    assert "The lag of 2 objects that are not read to their end is not told" in caplog.text


def test_a_store_that_is_away_is_told(bucket: FilesBucket):
    """It is no object without a lag."""
    bucket.put("a.txt", FOUR)
    stored: Stored = {bucket.partition("a.txt"): {"recordCount": 0}}
    bucket.proxy.fail(Fault(status=503, times=50))

    with pytest.raises(RetriableError):
        lags(bucket, stored)


def test_aivens_partitions_are_told_under_their_names(bucket: FilesBucket):
    """With the bytes behind the places that headrace writes; a mere count of records tells none."""
    bucket.put("a.txt", FOUR)
    bucket.put("b.txt", FOUR)
    named = [
        SourcePartition({"bucket": bucket.config.bucket, "objectKey": key})
        for key in ("a.txt", "b.txt")
    ]
    stored: Stored = {named[0]: {"recordCount": 1, "anchor": 8}, named[1]: {"recordCount": 1}}
    props = props_of_aiven(bucket, input_format="jsonl")

    assert {named[0]: 24} == AivenS3Connector().lag(props, stored)
