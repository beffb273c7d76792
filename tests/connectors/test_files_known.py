"""What the store knows of each file."""

from __future__ import annotations

import pytest

from headrace.connect import SourcePartition
from headrace.connectors.files.progress import by_file, part, whole


def test_entries_and_ranges_of_a_file_come_together():
    """Each path once; what belongs to no file is no one's."""
    entry, piece = {"anchor": 10}, {"anchor": 20, "done": True}
    known = by_file(
        {
            whole("/a"): entry,
            part("/a", (10, 20)): piece,
            part("/b", (0, 5)): piece,
            SourcePartition(other=1): entry,
        }
    )

    assert ["/a", "/b"] == list(known)
    assert 2 == len(known)
    assert (entry, {(10, 20): piece}) == (known["/a"].entry, known["/a"].ranges)
    assert (None, {(0, 5): piece}) == (known["/b"].entry, known["/b"].ranges)
    assert [True, False] == [path in known for path in ("/b", "/c")]
    assert known.get("/c") is None
    with pytest.raises(KeyError):
        known["/c"]
