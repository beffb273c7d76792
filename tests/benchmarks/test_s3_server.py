"""The server that benchmarks read from, as the connector's own store sees it."""

from __future__ import annotations

import itertools
from pathlib import Path

from benchmarks.download import downloaded
from benchmarks.s3_answers import ranged
from benchmarks.s3_server import BUCKET, PREFIX, made_up, s3_server, settings_of

from headrace.connectors.files.config import FilesConfig
from headrace.stores.store import Store


def store_at(url: str) -> Store:
    """The connector's store on the server at *url*."""
    props = {"files.path": f"s3://{BUCKET}/", "topic": "t", **settings_of(url)}
    config = FilesConfig.parse(props)
    assert config.root
    return config.open_store(config.root)


def test_files_are_listed_and_read_from_any_byte(tmp_path: Path):
    """With the identity in the listing."""
    (tmp_path / "a.txt").write_bytes(b"0123456789")
    (tmp_path / "b.txt").write_bytes(b"")
    with s3_server(tmp_path) as url:
        store = store_at(url)
        first, second = store.list()
        with store.open("a.txt", first.version, 7) as stream:
            rest = stream.read()
        whole = downloaded(url, "a.txt")

    assert [("a.txt", 10), ("b.txt", 0)] == [(each.key, each.size) for each in (first, second)]
    assert b"789" == rest
    assert 10 == whole["bytes"]


def test_as_many_keys_as_wanted_are_listed():
    """Page by page, in order, each once."""
    with s3_server(2500) as url:
        found = list(store_at(url).list(PREFIX))

    assert 2500 == len(found)
    assert all(a.key < b.key for a, b in itertools.pairwise(found))
    assert made_up(2499).key == found[-1].key


def test_ranges():
    """An end after the object's is the object's end."""
    assert range(10) == ranged(None, 10)
    assert range(3, 10) == ranged("bytes=3-", 10)
    assert range(3, 5) == ranged("bytes=3-4", 10)
    assert range(3, 10) == ranged("bytes=3-99", 10)
