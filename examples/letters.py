"""A connector with the source framework: each letter in a SQLite table becomes a record per line, exactly once."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator

from headrace.connect import setting
from headrace.sources import (
    Context,
    NativeConnector,
    NativeItem,
    NativeSource,
    NativeSourceTask,
    NumberKeys,
    SourceConfig,
)

FROM = "SELECT id, content FROM letters WHERE id >= ? ORDER BY id"


class LettersConfig(SourceConfig):
    """What can be set in addition to the framework's own settings."""

    database: str = setting(doc="The SQLite file with the table letters (id, content).")


class Letter(NativeItem[int]):
    """One letter, whose key is its number."""

    def __init__(self, number: int, content: bytes) -> None:
        self._number = number
        self._content = content

    def context(self) -> Context[int]:
        """What is known before it is read."""
        return Context(native_key=self._number)

    def open(self) -> io.BytesIO:
        """Its text."""
        return io.BytesIO(self._content)


class Letters(NativeSource[int]):
    """Lists the table."""

    name = "table of letters"
    item_class = Letter

    def __init__(self, database: str) -> None:
        self._database = sqlite3.connect(database, check_same_thread=False)

    def items(self, start_from: int | None) -> Iterator[Letter]:
        """The letters from a number on."""
        for number, content in self._database.execute(FROM, [start_from or 0]):
            yield Letter(number, content)

    def key_codec(self) -> NumberKeys:
        """Keys are numbers."""
        return NumberKeys()

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class LettersTask(NativeSourceTask):
    """Reads the table; ``extractor.class`` decides which records a letter has."""

    config_class = LettersConfig

    def source(self, config: LettersConfig) -> Letters:
        """The table."""
        return Letters(config.database)


class LettersConnector(NativeConnector):
    """Puts the classes together."""

    config_class = LettersConfig
    task_class = LettersTask
    source_class = Letters
