"""The author guide's connector: it passes the framework's suite, and runs for real."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import letters
import once
import pytest

from headrace.sources import extractor_named
from headrace.sources.extractor import Extractor
from headrace.testing.judge import committed_records
from headrace.testing.native_connector_suite import NativeConnectorSuite
from headrace.testing.native_suite import NativeSourceSuite


def write(database: Path, *texts: str):
    """Write letters."""
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("CREATE TABLE IF NOT EXISTS letters (id INTEGER PRIMARY KEY, content BLOB)")
        opened.executemany(
            "INSERT INTO letters (content) VALUES (?)", [(text.encode(),) for text in texts]
        )


class TestLetters(NativeSourceSuite):
    """The contracts of the framework."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[letters.Letters]:
        """Three letters, one of them empty."""
        write(tmp_path / "letters.db", "a\nb\n", "", "c\n")
        source = letters.Letters(str(tmp_path / "letters.db"))
        yield source
        source.close()

    @pytest.fixture
    def extractor(self) -> Extractor:
        """Lines."""
        return extractor_named("lines")


class TestLettersConnector(NativeConnectorSuite):
    """Those of a whole connector."""

    @pytest.fixture
    def connector(self) -> type[letters.LettersConnector]:
        """Letters."""
        return letters.LettersConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> dict[str, str]:
        """Three letters, one of them empty."""
        database = tmp_path / "letters.db"
        write(database, "a\nb\n", "", "c\n")
        return {"topic": "letters", "database": str(database), "extractor.class": "lines"}


run_once = partial(
    once.run_once,
    worker="letters_worker.json",
    connector="letters.json",
    place={"database": "letters.db"},
    slots=2,
)


@pytest.mark.broker
def test_each_line_is_sent_once(bootstrap: str, tmp_path: Path):
    """By two tasks that share the letters out, also when it is run again after more were written."""
    topic = f"letters-{uuid.uuid4().hex[:8]}"
    write(tmp_path / "letters.db", *(f"{number}a\n{number}b\n" for number in range(30)))
    run_once(bootstrap, tmp_path, topic)
    write(tmp_path / "letters.db", "late\n")

    run_once(bootstrap, tmp_path, topic)

    found = sorted((record.value or b"").decode() for record in committed_records(bootstrap, topic))
    assert sorted(["late", *(f"{number}{line}" for number in range(30) for line in "ab")]) == found
