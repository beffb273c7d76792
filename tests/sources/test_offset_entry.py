"""Entries: what may be set, what comes back, and that all is copied."""

from __future__ import annotations

import pytest

from headrace.connect.errors import OffsetsError
from headrace.connect.partition import SourcePartition
from headrace.offsets.codec import OffsetKey as StoredKey
from headrace.offsets.codec import decoded_key, encoded_key
from headrace.sources import OffsetEntry, OffsetKey
from headrace.sources.offset_entry import KEPT, entry_data

KEY = OffsetKey({"key": "a"})


@pytest.mark.parametrize("name", ["key", "watermark", *sorted(KEPT)])
def test_restricted_properties_cannot_be_set(name: str):
    """Those of the key, the framework's own, and those that the author restricts; not in a copy either."""
    entry = OffsetEntry(KEY, {"watermark": 5}, restricted=frozenset({"watermark"}))

    for each in (entry, entry.from_properties(entry.properties())):
        with pytest.raises(ValueError, match=f"The property '{name}' .* cannot be set"):
            each.set(name, 6)
        assert 5 == each.get("watermark")


def test_a_property_has_a_name():
    """``get(None)`` raises, and a property that is not there is ``None``."""
    with pytest.raises(TypeError, match="A property has a name"):
        OffsetEntry(KEY).get(None)  # pyright: ignore[reportArgumentType]
    assert OffsetEntry(KEY).get("nothing") is None


def test_an_entry_is_detached_from_what_it_was_given():
    """Copies, not views; also those within."""
    given: dict[str, list[int]] = {"list": [1]}
    entry = OffsetEntry(KEY, given)
    given["list"].append(2)
    entry.get("list").append(3)
    entry.properties()["list"] = None
    other = entry.from_properties(entry.properties())
    other.set("list", [4])

    assert [1] == entry.get("list")


def test_a_null_survives_the_way_through_the_store():
    """A property that was set to nothing is another one than one that was never set."""
    entry = OffsetEntry(KEY)
    entry.set("x", None)
    again = OffsetEntry(KEY, entry_data(KEY.partition, {**entry.own_offset(), "recordCount": 0}))

    assert {"x": None} == entry.own_offset() == again.own_offset()
    assert entry.properties() == again.properties()


def test_what_is_set_has_a_name():
    """As what is got."""
    with pytest.raises(TypeError, match="A property has a name"):
        OffsetEntry(KEY).set(None, 1)  # pyright: ignore[reportArgumentType]


def test_a_key_of_bytes_survives_the_way_through_the_store():
    """Lists and maps as well; text that looks like them is another key."""
    values = [b"x", ["x"], {"x": 1}, '@json:{"@bytes":"eA=="}', "x"]
    keys = [OffsetKey({"key": value}) for value in values]

    assert len(values) == len(set(keys))
    for value, key in zip(values, keys, strict=True):
        stored = decoded_key(encoded_key("c", key.partition))
        assert isinstance(stored, StoredKey)
        data = entry_data(SourcePartition(dict(stored.partition)), {"recordCount": 1})
        assert {"key": value, "recordCount": 1} == data
        assert key == OffsetEntry(key).from_properties(data).key
        assert {"key": value} == key.partition_map()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), 2**63])
def test_a_key_that_cannot_be_stored_is_refused_when_it_is_made(value: object):
    """With its name."""
    with pytest.raises(ValueError, match="'key'"):
        OffsetKey({"key": value})


def test_numbers_have_64_bits():
    """Larger ones are refused with their name and value."""
    entry = OffsetEntry(KEY)
    entry.set("most", 2**63 - 1)

    with pytest.raises(ValueError, match=f"'more' is {2**63}; integers may have 64 bits"):
        entry.set("more", 2**63)
    assert 2**63 - 1 == entry.get("most")


def test_a_count_of_another_tool_is_a_count():
    """Whole numbers with a point are; anything else is refused."""
    assert 3 == OffsetEntry(KEY, {"recordCount": 3.0}).record_count
    for wrong in (-1, 1.5, "3", True):
        with pytest.raises(OffsetsError, match="must be a whole number"):
            OffsetEntry(KEY, {"recordCount": wrong})


def test_an_entry_without_its_key_is_refused():
    """It would be that of no object."""
    with pytest.raises(OffsetsError, match="lacks key"):
        OffsetEntry(KEY).from_properties({"recordCount": 1})


def test_what_the_framework_stored_is_not_the_authors():
    """Its data has the key, the count and the author's properties."""
    stored = {"recordCount": 2, "anchor": 5, "skip": 0, "version": "v", "done": True, "own": "x"}

    assert {"key": "a", "recordCount": 2, "own": "x"} == entry_data(
        SourcePartition(key="a"), stored
    )
