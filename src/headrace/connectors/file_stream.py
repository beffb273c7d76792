"""One growing text file, or standard input, as Kafka Connect's FileStreamSource reads it.

Each line is a string. One task. Exactly-once is supported for a file: its offset is the number of bytes
behind the last line. Standard input has no offsets.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import OffsetsError, TaskFailedError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.reread_commands import ALL_ANEW
from headrace.connect.schema import STRING
from headrace.connect.setting import setting
from headrace.connect.task import Offsets, SourceTask
from headrace.connectors.files.naming.topics import topic_problem
from headrace.connectors.line_tail import LineTail, line_ahead, open_tail

_LOG = logging.getLogger(__name__)
_FILENAME = "filename"
_POSITION = "position"
_STDIN = "headrace.stdin"
_WAIT_SECONDS = 1.0
_NAP_SECONDS = 0.05


class FileStreamSourceConfig(Config):
    """What Kafka Connect's FileStreamSource has, and two settings of our own."""

    file: str | None = setting(
        default=None,
        importance="high",
        doc="Source filename. If not specified, the standard input will be used",
    )
    topic: str = setting(
        importance="high",
        non_empty=True,
        valid=topic_problem,
        doc="The topic to publish data to",
    )
    batch_size: int = setting(
        "batch.size",
        default=2000,
        at_least=1,
        importance="low",
        doc="The maximum number of records the source task can read from the file each time it is polled. "
        "Without it, a poll returns up to a mebibyte of lines.",
    )
    max_line_bytes: int = setting(
        "file.max.line.bytes",
        default=1024 * 1024,
        at_least=1,
        importance="low",
        doc="The longest line in bytes; a longer one is an error.",
    )
    inside_line: Literal["continue", "line-start"] = setting(
        "file.position.inside.line",
        default="continue",
        importance="low",
        doc="Where to go on when the stored position lies inside a line, as Kafka Connect leaves it behind "
        "text that is not ASCII: there, or at the beginning of that line.",
    )

    @property
    def most_rows(self) -> int | None:
        """How many records a poll may return, if the user said so."""
        return self.batch_size if "batch.size" in self.originals else None


class FileStreamSourceTask(SourceTask):
    """Follows the file. A last line waits until its line end arrives."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._config = FileStreamSourceConfig.parse(config)
        self._stdin = config.get(_STDIN, "/dev/stdin")
        self._tail: LineTail | None = None
        self._partition = _partition(self._config.file)

    def poll(self) -> Sequence[SourceBatch] | None:
        """The next lines, after waiting up to a second for some."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            batch = self._next()
            if batch is not None:
                return [batch]
            if time.monotonic() >= deadline or self.context.stopping():
                return None
            time.sleep(_NAP_SECONDS)

    def resumes_cheaply(self) -> bool:
        """Only with a file: what was read of standard input cannot be read again."""
        return bool(self._config.file)

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        tail = getattr(self, "_tail", None)
        if tail is not None:
            tail.close()

    def _next(self) -> SourceBatch | None:
        if self._tail is None:
            self._tail = self._opened()
        rows = self._tail.next_lines() if self._tail is not None else None
        if rows is None:
            return None
        values, positions = rows
        return SourceBatch(
            topic=self._config.topic,
            values=values,
            value_schema=STRING,
            source_partition=self._partition,
            offsets=self._offsets(positions),
            timestamps=int(time.time() * 1000),
        )

    def _offsets(self, positions: pa.Int64Array) -> BatchOffsets | None:
        return BatchOffsets(columns={_POSITION: positions}) if self._config.file else None

    def _opened(self) -> LineTail | None:
        """The file behind the stored position, or ``None`` while it does not exist."""
        config = self._config
        position = _position(self.context.offsets.offset(self._partition)) if config.file else 0
        return open_tail(
            config.file or self._stdin,
            position=position,
            to_line_start=config.inside_line == "line-start",
            max_rows=config.most_rows,
            max_line_bytes=config.max_line_bytes,
        )


class FileStreamSourceConnector(SourceConnector):
    """Kafka Connect's ``org.apache.kafka.connect.file.FileStreamSourceConnector``."""

    config_class: ClassVar[type[Config]] = FileStreamSourceConfig
    task_class: ClassVar[type[SourceTask]] = FileStreamSourceTask

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        self._props = dict(props)
        self._config = FileStreamSourceConfig.parse(props)
        self._file = self._config.file
        self._is_missing = False
        _LOG.info("Reading %s.", self._file or "standard input")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Always one."""
        # A slot is another process, whose own standard input is not the one that the user means.
        stdin = f"/proc/{os.getpid()}/fd/0"
        if self._file or not Path(stdin).exists():
            return [self._props]
        return [{**self._props, _STDIN: stdin}]

    def has_work(self, offsets: OffsetReader) -> bool | None:
        """Whether the file has another line; of standard input only polling tells.

        A file that is not there is waited for, as Kafka Connect does, and told once.
        """
        if not self._file:
            return None
        position = _position(offsets.offset(_partition(self._file)))
        limit = self._config.max_line_bytes
        ahead = line_ahead(self._file, position, max_line_bytes=limit)
        if ahead is None and not self._is_missing:
            _LOG.warning(_GONE if position else _NOT_YET, self._file, position)
        self._is_missing = ahead is None
        return bool(ahead)

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Only with a file."""
        named = FileStreamSourceConfig.parse(props).file
        return ExactlyOnceSupport.SUPPORTED if named else ExactlyOnceSupport.UNSUPPORTED

    def lag(
        self, props: Mapping[str, str], offsets: Mapping[SourcePartition, SourceOffset]
    ) -> Mapping[SourcePartition, int]:
        """The bytes behind the position, while the file is there."""
        file = FileStreamSourceConfig.parse(props).file
        offset = offsets.get(_partition(file))
        if not file or offset is None:
            return {}
        try:
            size = Path(file).stat().st_size
        except FileNotFoundError:
            return {}
        return {_partition(file): max(0, size - _position(offset))}

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """Refuse with Kafka Connect's sentences."""
        if not props.get("file", "").strip():
            raise OffsetsError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is because "
                "stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets.items():
            if offset is not None:
                _check(partition, offset)

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """Nothing has to happen outside."""
        self.validate_offsets(props, offsets)
        return True


_GONE = (
    "%s: The file is gone. Its first %d bytes have been read; reading goes on behind them when it is back. "
    f"If another file will have its name, {ALL_ANEW}."
)
_NOT_YET = "%s: The file does not exist yet (position %d); it is waited for. If it never comes, correct file."


def _check(partition: SourcePartition, offset: SourceOffset) -> None:
    if _POSITION not in offset:
        raise OffsetsError("Offset objects should either be null or contain the key 'position'")
    position = offset[_POSITION]
    if not isinstance(position, int) or isinstance(position, bool):
        raise OffsetsError(
            "The value for the 'position' key in the offset is expected to be a Long value"
        )
    if position < 0:
        raise OffsetsError(
            "The value for the 'position' key in the offset should be a non-negative value"
        )
    if _FILENAME not in partition:
        raise OffsetsError("Partition objects should contain the key 'filename'")


def _partition(file: str | None) -> SourcePartition:
    return SourcePartition({_FILENAME: file}) if file else SourcePartition()


def _position(offset: SourceOffset | None) -> int:
    """The stored position; raises ``TaskFailedError`` for one that is none."""
    position = (offset or {}).get(_POSITION)
    if position is None:
        return 0
    if not isinstance(position, int) or position < 0:
        raise TaskFailedError(
            f"The stored offset has the position {position!r}, which is no number of bytes. "
            f"To have the file read again, {ALL_ANEW}."
        )
    return position
