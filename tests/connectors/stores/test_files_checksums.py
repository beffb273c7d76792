"""Objects whose bytes are not those that their checksum speaks of are not done, whatever their format."""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from fastavro import parse_schema, writer

from connectors.stores.files_bucket import FilesBucket, Stored, values
from connectors.stores.s3_proxy import Answer, Fault
from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.connector import FilesConnector
from headrace.stores.checksum import Checksum
from headrace.stores.errors import ChecksumError
from headrace.task.connector_spec import ErrorPolicy
from task.local_loop import Rounds

# Without repetitions, so that packers leave the text as it is.
ROWS = [base64.urlsafe_b64encode(Random(n).randbytes(18)).decode() for n in range(12_000)]
FLIPPED = ROWS[1].encode(), b"?" * len(ROWS[1])


def avro() -> bytes:
    """A file of many blocks."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]}
    file = io.BytesIO()
    writer(file, parse_schema(schema), [{"v": each} for each in ROWS], sync_interval=2000)
    return file.getvalue()


def lz4() -> bytes:
    """Without a checksum of its own."""
    packed = pa.compress("\n".join(ROWS).encode(), codec="lz4", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


CONTENTS: dict[str, Callable[[], bytes]] = {
    "in/a.txt": lambda: "\n".join(ROWS).encode(),
    "in/a.jsonl": lambda: "".join(f'{{"v": "{each}"}}\n' for each in ROWS).encode(),
    "in/a.csv": lambda: "\n".join(["v", *ROWS]).encode(),
    "in/a.avro": avro,
    "in/a.txt.lz4": lz4,
}
PIECES = {"files_batch_max_bytes": "4096", "files_batch_max_rows": "1000"}


def telling(data: bytes, *, flipped: bool) -> Callable[[Answer], Answer]:
    """Turns answers into those of a store that has a checksum of *data*; *flipped*: and were damaged on their way."""
    checksum = Checksum("crc64nvme", b"")
    checksum.update(data)

    def changed(answer: Answer) -> Answer:
        told = {**answer.headers, "x-amz-checksum-crc64nvme": checksum.found}
        assert not flipped or FLIPPED[0] in answer.body
        body = answer.body.replace(*FLIPPED) if flipped else answer.body
        return replace(answer, headers=told, body=body)

    return changed


@pytest.mark.parametrize("key", CONTENTS)
def test_an_object_that_arrives_damaged_is_not_done(bucket: FilesBucket, key: str):
    """Its records before the last piece were sent; the last ones are not, and all of a copy is."""
    data = CONTENTS[key]()
    bucket.put(key, data)
    stored: Stored = {}
    run = bucket.local_run(stored, "in/", **PIECES)
    bucket.proxy.fail(Fault("GET", key, change=telling(data, flipped=True)))

    with pytest.raises(ChecksumError, match=r"in/a.*crc64nvme checksum.*another key"):
        run.until_idle()

    assert len(run.delivered) < len(ROWS)
    assert not any(offset.get("done") for offset in stored.values())
    copied = key.replace("/a", "/copy")
    bucket.put(copied, data)
    bucket.proxy.fail(Fault("GET", copied, change=telling(data, flipped=False)))
    assert len(ROWS) == len(bucket.run(stored, "in/copy", **PIECES))
    assert stored[bucket.partition(copied)]["done"]


def test_an_object_that_fits_one_piece_is_read_again(
    bucket: FilesBucket, caplog: pytest.LogCaptureFixture
):
    """Nothing of it was sent, so that no one has to do anything."""
    data = "\n".join(ROWS[:1000]).encode()
    bucket.put("in/a.txt", data)
    stored: Stored = {}
    bucket.proxy.fail(Fault("GET", "in/a.txt", change=telling(data, flipped=True)))

    with caplog.at_level(logging.WARNING):
        assert ROWS[:1000] == values(bucket.run(stored, "in/"))

    assert "'in/a.txt'" in caplog.text
    assert 2 == len(bucket.reads("in/a.txt"))
    assert stored[bucket.partition("in/a.txt")]["done"]


def test_what_is_stored_damaged_fails_also_where_bad_records_are_tolerated(bucket: FilesBucket):
    """No record is bad, and no one knows which of them would be: none is passed over."""
    data = CONTENTS["in/a.txt"]()
    bucket.put("in/a.txt", data)
    played = Rounds(
        FilesConnector,
        bucket.props("in/", name="c", **PIECES),
        ErrorPolicy(tolerate=True, dead_letters="dead", headers=True),
    )
    bucket.proxy.fail(Fault("GET", "in/a.txt", times=2, change=telling(data, flipped=True)))

    with pytest.raises(TaskFailedError, match="what is stored is not"):
        played.play()

    assert [] == played.values("dead")
    assert not any(offset.get("done") for offset in played.stored.values())
