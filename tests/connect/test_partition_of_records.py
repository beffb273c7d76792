"""Source partitions of what a task returns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headrace.connect import BadRecord, SourceBatch, SourcePartition, SourceRecord


def record(partition: Any) -> SourceRecord:  # noqa: ANN401 (authors may give anything)
    """A record of that partition."""
    return SourceRecord(topic="t", value="v", source_partition=partition, source_offset={"at": 1})


def batch(partition: Any) -> SourceBatch:  # noqa: ANN401 (authors may give anything)
    """A batch of that partition."""
    return SourceBatch(topic="t", values=pa.array(["v"]), source_partition=partition, offsets=None)


def bad(partition: Any) -> BadRecord:  # noqa: ANN401 (authors may give anything)
    """A bad record of that partition."""
    return BadRecord(source_partition=partition, source_offset=None)


MAKERS = pytest.mark.parametrize("made", [record, batch, bad])


@MAKERS
def test_a_plain_mapping_becomes_a_source_partition(made: Any):  # noqa: ANN401 (one of these functions)
    """Offsets are kept by it, and a dictionary can be no key of another one."""
    partition = made({"file": "a"}).source_partition

    assert SourcePartition(file="a") == partition
    assert isinstance(partition, SourcePartition)
    whole = SourcePartition(file="b")
    assert whole is made(whole).source_partition


@MAKERS
@pytest.mark.parametrize("given", ["a.txt", None, ("file", "a")])
def test_what_is_no_mapping_is_refused_where_it_is_made(made: Any, given: object):  # noqa: ANN401 (one of these functions)
    """In a sentence that shows the right form."""
    with pytest.raises(TypeError, match=r"must be a SourcePartition .* SourcePartition\(file='a"):
        made(given)
