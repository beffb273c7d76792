"""Batches that are too large to be one step of the loop, in pieces; pure."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.batch import SourceBatch

# A quarter of the client's queue: at 1 MB/s, which is slow, a piece takes eight seconds of the sixty that a
# transaction may be open.
MOST_BYTES = 8 * 1024 * 1024
# Where each row costs 50 µs, as with transformations in plain Python, a piece takes three seconds.
MOST_ROWS = 65_536


def pieces(
    batch: SourceBatch, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> Iterator[SourceBatch]:
    """*batch* in pieces of about one size, none with more than *most_rows* rows, or *most_bytes* by its average row.

    Between two of them a transaction may end. Nothing is copied.
    """
    per_row = batch.nbytes / max(1, len(batch))
    fitting = min(most_rows, max(1, int(most_bytes / max(1.0, per_row))))
    if len(batch) <= fitting:
        yield batch
        return
    count = -(-len(batch) // fitting)
    step = -(-len(batch) // count)
    for start in range(0, len(batch), step):
        yield batch.slice(start, min(step, len(batch) - start))
