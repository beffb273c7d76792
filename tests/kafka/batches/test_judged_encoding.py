"""What is encoded, by the classes with which Kafka's broker and Java's clients check and read batches."""

from __future__ import annotations

import random

import pytest

from column_batches import columns, logged, numbered
from headrace.kafka.batches.compression import Compression
from headrace.kafka.batches.encoding import Encoding, encoded
from judges.java_judge import JavaJudge
from record_batches import COMPRESSIONS, GZIP, LZ4, ZSTD, Row

pytestmark = pytest.mark.broker

LEVELS = {GZIP: (None, 1, 9), LZ4: (None, 1, 9, 17), ZSTD: (None, 1, 9)}
CASES = [(codec, level) for codec in COMPRESSIONS for level in LEVELS.get(codec, (None,))]


def written() -> list[Row]:
    """Records of every kind: nulls, empty bytes, sizes around all limits, repeated and null headers, no time."""
    drawn = random.Random(19)
    sizes = [None, 0, 1, 11, 12, 13, 63, 64, 300]
    large = [Row(0, 5, b"k" * size, b"v" * size) for size in (8_191, 8_192, 70_000)]
    return large + [
        Row(
            at,
            drawn.choice([-1, 1_700_000_000_000 + at, drawn.randrange(1 << 62)]),
            *(
                None if size is None else drawn.randbytes(size // 2) + b"z" * (size - size // 2)
                for size in drawn.choices(sizes, k=2)
            ),
            headers=[("h", b"%d" % at), ("h", None), ("é", b""), ("n" * 200, b"v" * 99)][: at % 5],
        )
        for at in range(100)
    ]


@pytest.mark.parametrize(("codec", "level"), CASES)
@pytest.mark.parametrize("batch_bytes", [500, 1_000_000])
def test_java_reads_what_is_encoded(
    judge: JavaJudge, codec: int, level: int | None, batch_bytes: int
) -> None:
    """Each batch is valid, and its records are those that were written."""
    how = Encoding(compression=Compression(codec, level), batch_bytes=batch_bytes)
    data = logged(encoded(columns(written()), how))

    batches = judge.read_batches(data)

    found = [record for batch in batches for record in batch["records"]]
    assert numbered(written()) == [
        Row(
            **record
            | {"headers": [(header["key"], header["value"]) for header in record["headers"]]}
        )
        for record in found
    ]
    assert (codec in {batch["compression"] for batch in batches}) or batch_bytes == 500
    for batch in batches:
        times = [record["timestamp"] for record in batch["records"]]
        assert max(times) == batch["max_timestamp"]
        assert batch["records"][-1]["offset"] + 1 == batch["next_offset"]
