"""Record batches into columns: what was written is what is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.decoding import Decoding
from record_batches import COMPRESSIONS, Row, batch, read, rows


@given(rows(), st.integers(0, 30), st.sampled_from(COMPRESSIONS))
def test_what_was_written_is_read(written: list[Row], cut: int, compression: int) -> None:
    """Any keys, values, headers, times and gaps, in two batches, however many are decoded together."""
    batches = [part for part in (written[:cut], written[cut:]) if part]
    data = b"".join(batch(part, compression=compression) for part in batches)

    assert written == read(data)
    assert written == read(data, how=Decoding(with_headers=True, group_bytes=64))


@given(rows(), st.data())
def test_only_the_asked_offsets_are_read(written: list[Row], data: st.DataObject) -> None:
    """A batch may begin before the first and end after the last of them."""
    offsets = st.sampled_from([row.offset for row in written])
    start = data.draw(offsets)
    end = data.draw(st.none() | offsets.map(lambda offset: offset + 1))

    expected = [row for row in written if start <= row.offset and (end is None or row.offset < end)]
    assert expected == read(batch(written), start=start, end=end)


@given(rows())
def test_headers_are_left_out_when_no_one_asks(written: list[Row]) -> None:
    """The other columns are the same."""
    expected = [row._replace(headers=[]) for row in written]

    assert expected == read(batch(written), how=Decoding())
