"""An error of an object is never the end of its data (section 4.2 of the reference: the peer's is, always)."""

from __future__ import annotations

import gzip

import pytest

from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.formats.by_name import JSONL
from headrace.formats.streams import Compression
from headrace.sources import Extractor, SourceConfig, StreamExtractor
from headrace.testing.task_runs import LocalRun, Stored
from sources.shelf import KINDS, PROPS, Shelf, ShelfConnector, ShelfTask, partition_of

LINES = b"".join(b'{"n":%d}\n' % number for number in range(9))
JSON = {**PROPS, "extractor.class": "jsonl"}


class PackedTask(ShelfTask):
    """Expects gzip."""

    def extractor(self, config: SourceConfig) -> Extractor:
        """JSON lines in it."""
        return StreamExtractor(format=JSONL, compression=Compression.GZIP)


class PackedConnector(ShelfConnector):
    """The shelf, packed."""

    task_class = PackedTask


def failed(connector: ShelfConnector, stored: Stored, error: type[Exception], reason: str) -> int:
    """How many records were delivered before the *error*."""
    made = LocalRun(connector, JSON, stored)
    with pytest.raises(error, match=reason):
        made.until_idle()
    return len(made.delivered)


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_record_is_an_error_before_and_after_a_restart(
    shelf: Shelf, kind: type[ShelfConnector]
):
    """4.2: the object is not done, the good record behind it is not lost, nor is the next object read."""
    shelf.objects = {"a": LINES.replace(b'{"n":6}', b'{"n":'), "b": LINES}
    stored: Stored = {}

    assert 6 == failed(kind(), stored, RecordError, "a, .*record 7")
    assert 0 == failed(kind(), stored, RecordError, "a, .*record 7")

    assert {"recordCount": 6}.items() <= stored[partition_of("a")].items()
    assert not any("done" in offset for offset in stored.values())


@pytest.mark.parametrize(
    ("content", "most"),
    [(LINES, 0), (gzip.compress(LINES)[:-9], 9), (gzip.compress(LINES)[:-1], 9)],
)
def test_a_truncated_object_or_one_that_is_packed_otherwise_is_an_error(
    shelf: Shelf, content: bytes, most: int
):
    """4.2: it is not done, and nothing is sent twice."""
    shelf.objects = {"a": content, "b": gzip.compress(LINES)}
    stored: Stored = {}

    found = failed(PackedConnector(), stored, (RecordError, TaskFailedError), "a")  # type: ignore[arg-type]
    again = failed(PackedConnector(), stored, (RecordError, TaskFailedError), "a")  # type: ignore[arg-type]

    assert found + again <= most
    assert not any("done" in offset for offset in stored.values())


def test_an_object_that_cannot_be_opened_is_an_error(shelf: Shelf):
    """4.2: it is tried again, and passed over by no one."""
    shelf.objects = {"a": LINES, "b": LINES}
    shelf.broken = {"a": 0}
    stored: Stored = {}

    assert 0 == failed(ShelfConnector(), stored, RetriableError, "a cannot be read now: cut")

    assert {} == stored
    assert 18 == len(LocalRun(ShelfConnector(), JSON, stored).until_idle())
