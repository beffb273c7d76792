"""The conformance suite of native sources: subclass it, define its fixtures, and inherit its tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.connect.partition import OffsetValue, SourcePartition
from headrace.formats.chunk import Resume
from headrace.formats.format import ReadLimits
from headrace.offsets.codec import OffsetKey as StoredKey
from headrace.offsets.codec import decoded_key, decoded_value, encoded_key, encoded_value
from headrace.sources import (
    UNKNOWN_LENGTH,
    Extractor,
    NativeItem,
    NativeSource,
    NotAStreamError,
    OffsetEntry,
)
from headrace.sources.author_checks import opened
from headrace.sources.listing import Lister
from headrace.sources.offset_entry import KEPT, entry_data
from headrace.testing.format_suite import Found, records_of

_FEW = ReadLimits(rows=3, chunk_bytes=64 * 1024, record_bytes=1024 * 1024)


class NativeSourceSuite:
    """Tests a :class:`~headrace.sources.source.NativeSource` with at least two objects that do not change.

    Every test lists the source; nothing is written to it.
    """

    @pytest.fixture
    def source(self) -> NativeSource[Any]:
        """The source under test; a subclass replaces this."""
        raise NotImplementedError

    @pytest.fixture
    def extractor(self) -> Extractor:
        """The extractor that reads the items; a subclass replaces this."""
        raise NotImplementedError

    def test_objects_come_in_the_order_of_their_keys_each_time(
        self, source: NativeSource[Any]
    ) -> None:
        """The order is repeatable, and keys rise."""
        shown = [item.context().native_key for item in source.items(None)]
        keys = _keys(source)

        assert len(keys) > 1, "the suite needs at least two objects, and two on each page"
        assert shown == keys[: len(shown)], "a listing begins with the first object"
        assert keys == _keys(source), "the order repeats"
        assert all(one < other for one, other in itertools.pairwise(keys)), "keys rise"

    def test_a_listing_begins_at_any_key(self, source: NativeSource[Any]) -> None:
        """All following keys are listed, page by page; the key itself may be.

        No earlier key is listed, unless the source sets ``starts_at_keys = False``.
        """
        keys = _keys(source)
        for place, key in enumerate(keys):
            found = _keys(source, key)
            assert found in (keys[place:], keys[place + 1 :]), f"a listing from {key!r} on"
            if source.starts_at_keys:
                shown = [item.context().native_key for item in source.items(key)]
                before = [each for each in shown if each < key]
                assert not before, (
                    f"items({key!r}) ignores its start: it yields {before[0]!r}. "
                    "If the source cannot begin at a key, set starts_at_keys = False"
                )

    def test_a_version_is_that_of_the_content(self, source: NativeSource[Any]) -> None:
        """While an object does not change, its version does not either; otherwise it would be read again and again."""
        versions = _versions(source)
        for key, version in zip(_keys(source), versions, strict=True):
            wanted = f"version() of {key} gives {version!r}: a str that is not empty, or None"
            assert version is None or (isinstance(version, str) and version), wanted
        assert versions == _versions(source)

    def test_an_item_is_found_by_its_key(self, source: NativeSource[Any]) -> None:
        """It is the listed item: same context, same version."""
        if type(source).item is NativeSource.item:
            pytest.skip("its objects are found by listing only")
        for item in _listed(source):
            found = source.item(item.context().native_key)
            key = item.context().native_key
            assert found.context() == item.context(), f"item({key!r}) gives another context"
            assert found.version() == item.version(), f"item({key!r}) has another version"
            assert isinstance(found, source.item_class), f"item({key!r}) is of another class"

    def test_a_context_tells_its_key(self, source: NativeSource[Any]) -> None:
        """The same at each call, with a partition number that Kafka could have."""
        for item in _listed(source):
            context = item.context()
            key = context.native_key
            assert context == item.context(), f"context() of {key!r} is the same each time"
            assert context.partition is None or context.partition >= 0, f"the partition of {key!r}"
            assert isinstance(item, source.item_class), f"{key!r} is of item_class"

    def test_an_item_is_a_stream_or_is_not(self, source: NativeSource[Any]) -> None:
        """An item that is not a stream has no length either; each stream begins at the first byte."""
        for item in _listed(source):
            if type(item).open is NativeItem.open:
                with pytest.raises(NotAStreamError):
                    item.open()
                with pytest.raises(NotAStreamError):
                    item.estimated_length()
                continue
            length = item.estimated_length()
            key = item.context().native_key
            assert length == UNKNOWN_LENGTH or length >= 0, f"the estimated length of {key!r}"
            assert _content(item) == _content(item), f"open() of {key!r} gives all bytes each time"

    def test_a_key_has_a_text_form(self, source: NativeSource[Any]) -> None:
        """Decoding the text gives the same key, if the source has a codec."""
        codec = source.key_codec()
        if codec is None:
            pytest.skip("its keys have no text form")
        for key in _keys(source):
            again = codec.decode(codec.encode(key))
            assert again == key, f"the text of the key {key!r}"
            assert hash(again) == hash(key), f"the hash of the key {key!r}"

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
            assert each.partition_map().keys() == each.partition.keys()
            assert "recordCount" not in each.partition

    def test_an_entry_comes_back_from_the_store(self, source: NativeSource[Any]) -> None:
        """Properties, key and record count survive the bytes of the offsets topic."""
        for item in _listed(source):
            entry = source.entry_from_context(item.context())
            assert entry.record_count == 0
            assert entry.key == source.offset_key(item.context().native_key)
            entry.increment_record_count()
            again = source.entry_from_data(_stored(entry))
            if again is None:
                assert not source.resumes, "entry_from_data gives None: say resumes = False"
                pytest.skip("its objects are read from the beginning each time")
            assert again.properties() == entry.properties()
            assert again.key == entry.key
            assert again.record_count == 1

    def test_an_entry_gives_copies(self, source: NativeSource[Any]) -> None:
        """Changing a copy does not change the entry; the framework's own names cannot be set; None is not a name."""
        entry = source.entry_from_context(_listed(source)[0].context())
        before = json.dumps(entry.properties(), default=str)
        entry.properties().clear()

        assert before == json.dumps(entry.properties(), default=str)
        assert entry.get("no such property") is None
        with pytest.raises(TypeError):
            entry.get(None)  # pyright: ignore[reportArgumentType]
        assert {"recordCount"} == KEPT & entry.properties().keys(), (
            "the other names are the framework's"
        )
        for name in (*KEPT, *entry.key.partition):
            with pytest.raises(ValueError, match="cannot be set"):
                entry.set(name, 1)

    def test_reading_resumes_after_every_record(
        self, source: NativeSource[Any], extractor: Extractor
    ) -> None:
        """Wherever reading was interrupted, each record comes once, in the same order."""
        if not source.resumes:
            pytest.skip("its objects are read from the beginning each time")
        for item in _listed(source):
            records = _read(item, extractor, Resume())
            assert [each.place.record_count for each in records] == [*range(1, len(records) + 1)]
            for place, record in enumerate(records):
                rest = _read(item, extractor, record.place, record.constants)
                assert [each.value for each in rest] == [
                    each.value for each in records[place + 1 :]
                ], f"{item.context().native_key}: resuming after record {place + 1}"


def _keys(source: NativeSource[Any], start: object = None) -> list[Any]:
    return [item.context().native_key for item in _listed(source, start)]


def _listed(source: NativeSource[Any], start: object = None) -> list[NativeItem[Any]]:
    """All items, page by page, as the framework lists them."""
    return list(Lister(source).listed(start))


def _versions(source: NativeSource[Any]) -> list[str | None]:
    return [item.version() for item in _listed(source)]


def _content(item: NativeItem[Any]) -> bytes:
    with opened(item) as stream:
        return stream.read() or b""


def _read(
    item: NativeItem[Any],
    extractor: Extractor,
    resume: Resume,
    constants: Mapping[str, OffsetValue] | None = None,
) -> list[Found]:
    return records_of(extractor.reader(item, resume, _FEW, constants or {}))


def _stored(entry: OffsetEntry) -> Mapping[str, object]:
    """The data of *entry* as it comes back from the offsets topic."""
    offset = {**entry.own_offset(), "recordCount": entry.record_count}
    key = decoded_key(encoded_key("c", entry.key.partition))
    value = decoded_value(encoded_value(offset))
    assert isinstance(key, StoredKey)
    assert isinstance(value, Mapping)
    return entry_data(SourcePartition(dict(key.partition)), value)
