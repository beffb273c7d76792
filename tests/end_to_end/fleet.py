"""One connector of each family on one worker, all at work when something is killed."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import cast

from connectors.stores.s3_owner import S3Owner
from end_to_end.live import Life
from headrace.observe.events import Event, Replanned, SlotClaimed
from headrace.stores.s3.client import client_of
from headrace.stores.s3.config import S3Config
from headrace.testing.judge import Verdict, judged
from waiting import until

# Each task is at work for some seconds, with a dozen transactions or more.
_RECORDS, _RECORDS_PER_SECOND, _COMMIT_MS = 4_000, 500, 150
_AT_ONCE = "50"
# Two for the tasks of the local files, and one for each of the others.
SLOTS = 6
_HERE = "end_to_end."


@dataclass
class Fleet:
    """Local files, objects, a growing file, a table, and a task of an author's; *s3* is an S3 server's address.

    Each connector's topic has its name.
    """

    life: Life
    s3: str
    expected: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])

    def __post_init__(self) -> None:
        self.life.worker |= {
            "plugin.modules": "end_to_end.counted_task",
            "headrace.slots": str(SLOTS),
            "offset.storage.partitions": "3",
        }
        self._add_files()
        self._add_objects()
        self._add_growing_file()
        self._add_table()
        self._add_numbers()

    def write_configs(self) -> list[str]:
        """All configurations as files, for a command line that finds this folder's modules.

        A worker ships top-level modules to Spark, and this folder is none.
        """
        worker = {
            **self.life.worker_props(),
            "state.file": str(self.life.folder / "state.db"),
            "listeners": "http://127.0.0.1:0",
        }
        paths = [self.life.folder / "worker.json"]
        paths[0].write_text(json.dumps(worker).replace(_HERE, ""))
        for each in self.life.connectors:
            paths.append(self.life.folder / f"{each['name']}.json")
            paths[-1].write_text(json.dumps(each).replace(_HERE, ""))
        return [str(each) for each in paths]

    def await_all(self, kind: type[Event], *, since: int = 0, seconds: float = 120) -> None:
        """Return when each connector has told an event of *kind* behind the first *since* ones."""
        for name in self.expected:
            self.life.witness.wait_for(
                lambda event: isinstance(event, kind) and event.connector == name,  # noqa: B023 (called at once)
                since=since,
                seconds=seconds,
            )

    def pids(self, chance: random.Random) -> list[int]:
        """A process at work for each connector."""
        return [chance.choice(self._claimed_by(name)) for name in self.expected]

    def pids_when_due(self, delays: Mapping[str, float], chance: random.Random) -> Iterator[int]:
        """The same, each so many seconds after its connector has begun, however late that is."""
        left, begun = dict(delays), dict[str, float]()

        def due() -> str | None:
            for name in left:
                if self._claimed_by(name):
                    begun.setdefault(name, time.monotonic())
            now = time.monotonic()
            return next(
                (each for each, at in begun.items() if each in left and now > at + left[each]), None
            )

        while left:
            until(due, seconds=120)
            if name := due():
                del left[name]
                yield chance.choice(self._claimed_by(name))

    def _claimed_by(self, name: str) -> list[int]:
        claims = cast("list[SlotClaimed]", self.life.heard(SlotClaimed, of=name))
        return [each.pid for each in claims]

    def replanned(self) -> set[str]:
        """Connectors whose work was planned again, as a kill has hit it."""
        return {each.connector for each in cast("list[Replanned]", self.life.heard(Replanned))}

    def verdicts(self) -> Mapping[str, Verdict]:
        """What another client library finds in each topic that is not right."""
        found = {
            name: judged(self.life.bootstrap, name, expected)
            for name, expected in self.expected.items()
        }
        return {name: each for name, each in found.items() if not each.exactly_once}

    def _add_files(self) -> None:
        folder = self.life.folder / "files"
        folder.mkdir()
        parts = [_lines(f"part {number}") for number in range(2)]
        for number, lines in enumerate(parts):
            (folder / f"{number}.txt").write_bytes(_joined(lines))
        self._add(
            "files", [line for lines in parts for line in lines], files_path=str(folder), **_FILES
        )
        self.life.connectors[-1]["tasks.max"] = "2"

    def _add_objects(self) -> None:
        bucket = self.life.next_name()
        props = {
            "s3.endpoint": self.s3,
            "s3.region": "us-east-1",
            "s3.access.key.id": "id",
            "s3.secret.access.key": "very-secret",
        }
        client = cast("S3Owner", client_of(S3Config.parse({**props, "s3.bucket": bucket})))
        client.create_bucket(Bucket=bucket)
        lines = _lines("object")
        client.put_object(Bucket=bucket, Key="in/object.txt", Body=_joined(lines))
        self._add("files", lines, files_path=f"s3://{bucket}/in/", **_FILES)
        self.life.connectors[-1] |= props

    def _add_growing_file(self) -> None:
        file, lines = self.life.folder / "growing.txt", _lines("growing")
        file.write_bytes(_joined(lines))
        self._add("FileStreamSource", lines, file=str(file), batch_size=_AT_ONCE)

    def _add_table(self) -> None:
        database = self.life.folder / "table.db"
        with closing(sqlite3.connect(database)) as opened, opened:
            opened.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY)")
            opened.executemany(
                "INSERT INTO numbers VALUES (?)", [(each,) for each in range(_RECORDS)]
            )
        rows = [b'{"id":%d}' % number for number in range(_RECORDS)]
        json_of_rows = {
            "value_converter": "json",
            "value_converter_schemas_enable": "false",
        }
        self._add(
            "sqlite",
            rows,
            database=str(database),
            table="numbers",
            batch_rows=_AT_ONCE,
            **json_of_rows,
        )

    def _add_numbers(self) -> None:
        numbers = [b"%d" % number for number in range(_RECORDS)]
        self._add("end_to_end.counted_task:CountedConnector", numbers, numbers=str(_RECORDS))

    def _add(self, kind: str, expected: Sequence[bytes], **settings: str) -> None:
        name = self.life.add(kind, None, **settings)
        self.life.connectors[-1] |= {
            "tasks.max": "1",
            "transaction.boundary.interval.ms": str(_COMMIT_MS),
            "headrace.max.records.per.second": str(_RECORDS_PER_SECOND),
            # Each sender has connectors of several kinds.
            "headrace.sender": "wire" if len(self.expected) % 2 else "client",
        }
        self.expected[name] = list(expected)


_FILES = {"files_format": "lines", "files_min_age_ms": "0", "files_batch_max_rows": _AT_ONCE}


def _lines(name: str) -> list[bytes]:
    return [f"{name}, line {number}".encode() for number in range(_RECORDS)]


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
