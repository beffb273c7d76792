"""What every native source must do: subclass the suite, give it a ``source`` fixture, and inherit its tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.connect.partition import OffsetValue, SourcePartition
from headrace.sources import (
    UNKNOWN_LENGTH,
    Extractor,
    NativeItem,
    NativeSource,
    NotAStreamError,
    OffsetEntry,
)
from headrace.sources.extractors.chunk import Resume
from headrace.sources.extractors.format import ReadLimits
from headrace.sources.offset_entry import entry_data
from headrace.storage.offset_codec import OffsetKey as StoredKey
from headrace.storage.offset_codec import decoded_key, decoded_value, encoded_key, encoded_value
from headrace.testing.format_suite import Found, records_of

_FEW = ReadLimits(rows=3, chunk_bytes=64 * 1024, record_bytes=1024 * 1024)


class NativeSourceSuite:
    """For a :class:`~headrace.sources.source.NativeSource` with at least two objects that do not change.

    Every test lists the source; nothing is written to it.
    """

    @pytest.fixture
    def source(self) -> NativeSource[Any]:
        """The source under test; a subclass replaces this."""
        raise NotImplementedError

    @pytest.fixture
    def extractor(self) -> Extractor:
        """What reads the items; a subclass replaces this."""
        raise NotImplementedError

    def test_objects_come_in_the_order_of_their_keys_each_time(
        self, source: NativeSource[Any]
    ) -> None:
        """The order is repeatable, and keys rise."""
        keys = _keys(source)

        assert len(keys) > 1, "the suite needs at least two objects"
        assert keys == _keys(source)
        assert all(one < other for one, other in itertools.pairwise(keys))

    def test_a_listing_begins_at_any_key(self, source: NativeSource[Any]) -> None:
        """All that follow are there; the key itself may be, and a source may list everything."""
        keys = _keys(source)
        for place, key in enumerate(keys):
            listed = _keys(source, key)
            assert keys[place + 1 :] == listed[len(listed) - len(keys) + place + 1 :]

    def test_a_context_tells_its_key(self, source: NativeSource[Any]) -> None:
        """The same each time it is asked, with a partition that Kafka could have."""
        for item in source.items(None):
            context = item.context()
            assert context == item.context()
            assert context.partition is None or context.partition >= 0
            assert isinstance(item, source.item_class)

    def test_an_item_is_a_stream_or_is_not(self, source: NativeSource[Any]) -> None:
        """One that is none has no length either; each stream begins at the first byte."""
        for item in source.items(None):
            if type(item).open is NativeItem.open:
                with pytest.raises(NotAStreamError):
                    item.open()
                with pytest.raises(NotAStreamError):
                    item.estimated_length()
                continue
            length = item.estimated_length()
            assert length == UNKNOWN_LENGTH or length >= 0
            assert _content(item) == _content(item)

    def test_a_key_has_a_text_form(self, source: NativeSource[Any]) -> None:
        """It comes back as the same key, where keys have one."""
        codec = source.key_codec()
        if codec is None:
            pytest.skip("its keys have no text form")
        for key in _keys(source):
            again = codec.decode(codec.encode(key))
            assert again == key
            assert hash(again) == hash(key)

    def test_offset_keys_name_objects(self, source: NativeSource[Any]) -> None:
        """Equal for the same object, with equal hashes; different for others; maps are copies."""
        keys = _keys(source)
        named = [source.offset_key(key) for key in keys]
        again = [source.offset_key(key) for key in keys]

        assert named == again
        assert [hash(each) for each in named] == [hash(each) for each in again]
        assert len(set(named)) == len(named)
        for each in named:
            each.partition_map().clear()
            assert each.partition_map() == dict(each.partition)
            assert "recordCount" not in each.partition

    def test_an_entry_comes_back_from_the_store(self, source: NativeSource[Any]) -> None:
        """Through the bytes of the offsets topic: properties, key and record count."""
        for item in source.items(None):
            entry = source.entry_from_context(item.context())
            assert entry.record_count == 0
            assert entry.key == source.offset_key(item.context().native_key)
            entry.increment_record_count()
            again = source.entry_from_data(_stored(entry))
            if again is None:
                pytest.skip("its objects are read from the beginning each time")
            assert again.properties() == entry.properties()
            assert again.key == entry.key
            assert again.record_count == 1

    def test_an_entry_gives_copies(self, source: NativeSource[Any]) -> None:
        """What a caller does to them changes nothing; what the framework keeps cannot be set."""
        entry = source.entry_from_context(next(iter(source.items(None))).context())
        before = json.dumps(entry.properties(), default=str)
        entry.properties().clear()

        assert before == json.dumps(entry.properties(), default=str)
        assert entry.get("no such property") is None
        for name in ("recordCount", *entry.key.partition):
            with pytest.raises(ValueError, match="cannot be set"):
                entry.set(name, 1)

    def test_reading_goes_on_behind_every_record(
        self, source: NativeSource[Any], extractor: Extractor
    ) -> None:
        """Each record comes once, in the same order, wherever reading was interrupted."""
        for item in source.items(None):
            records = _read(item, extractor, Resume())
            assert [each.place.record_count for each in records] == [*range(1, len(records) + 1)]
            for place, record in enumerate(records):
                rest = _read(item, extractor, record.place, record.constants)
                assert [each.value for each in rest] == [
                    each.value for each in records[place + 1 :]
                ]


def _keys(source: NativeSource[Any], start: object = None) -> list[Any]:
    return [item.context().native_key for item in source.items(start)]


def _content(item: NativeItem[Any]) -> bytes:
    with item.open() as stream:
        return stream.read() or b""


def _read(
    item: NativeItem[Any],
    extractor: Extractor,
    resume: Resume,
    constants: Mapping[str, OffsetValue] | None = None,
) -> list[Found]:
    return records_of(extractor.reader(item, resume, _FEW, constants or {}))


def _stored(entry: OffsetEntry) -> Mapping[str, object]:
    """The data of *entry* after a way through the offsets topic."""
    offset = {**entry.own_offset(), "recordCount": entry.record_count}
    key = decoded_key(encoded_key("c", entry.key.partition))
    value = decoded_value(encoded_value(offset))
    assert isinstance(key, StoredKey)
    assert isinstance(value, Mapping)
    return entry_data(SourcePartition(dict(key.partition)), value)
