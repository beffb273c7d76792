"""A connector on a store that a test fills, and plans whose work is done at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from unittest import mock

from connectors.files_steps import Stored
from headrace.connect import Explained, SourceOffset, SourcePartition
from headrace.connect.connector import Plan, PlanRequest
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.tracking.marks import MARK
from headrace.runtime.assignment import checked_plan
from headrace.stores.errors import ObjectGoneError
from headrace.stores.store import Store, StoredObject
from headrace.testing.task_runs import StoredOffsets

ROOT = "s3://b/"
# By the clock, when the time that tests move begins.
BEGUN = 1_800_000_000.0
MARK_OF_STORE = SourcePartition(mark=ROOT)


class FilledStore:
    """Lists in order from where it is asked to, and notes what it has shown."""

    name = "s3://b"

    def __init__(self) -> None:
        self.objects: dict[str, StoredObject] = {}
        self.shown: list[str] = []
        self.heads = 0

    def put(self, *keys: str, at: int = 1, version: str = "v1") -> None:
        """Put objects of these keys, changed at that time in milliseconds."""
        for key in keys:
            self.objects[key] = StoredObject(key=key, size=9, version=version, modified_ms=at)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store``."""
        for key in sorted(self.objects):
            if key.startswith(prefix) and key > start_after:
                self.shown.append(key)
                yield self.objects[key]

    def head(self, key: str) -> StoredObject:
        """See ``Store``."""
        self.heads += 1
        if key not in self.objects:
            raise ObjectGoneError(self.name, key)
        return self.objects[key]


class Played:
    """Plans over *store*, one after the other, at a time that the test moves; :meth:`restart` is a new process.

    Seconds that only rise begin again in each process. By *skew* the clock is wrong.
    """

    def __init__(self, store: FilledStore, stored: Stored | None = None, /, **props: str) -> None:
        self.store = store
        self.stored: Stored = {} if stored is None else stored
        self.now = 0.0
        self.skew = 0.0
        self.read: list[str] = []
        self.restart(**props)

    def restart(self, **props: str) -> Played:
        """Go on in another run, with these settings."""
        named = {key.replace("_", "."): value for key, value in props.items()}
        given = {"files.path": ROOT, "topic": "t", "files.format": "jsonl", **named}
        begun = self.now
        self.connector = FilesConnector(
            ticks=lambda: self.now - begun, clock=lambda: BEGUN + self.now + self.skew
        )
        with mock.patch.object(FilesConfig, "open_store", return_value=cast("Store", self.store)):
            self.connector.start(given)
        return self

    def plan(self) -> Plan:
        """The next plan, whose offsets are committed; what the store has shown before is forgotten."""
        self.store.shown.clear()
        request = PlanRequest(slots=2, offsets=StoredOffsets(self.stored))
        plan = checked_plan(self.connector.plan(request), connector="c", slots=2)
        for partition, offset in plan.offsets.items():
            if offset is None:
                del self.stored[partition]
            else:
                self.stored[partition] = offset
        return plan

    def round(self, *, but: str = "") -> list[str]:
        """The keys that the next plan reads to their end, all of them *but* one."""
        done = list[str]()
        for split in (each for share in self.plan().shares for each in share):
            key = str(split.partition["filename"]).removeprefix(ROOT)
            if key != but:
                self.stored[split.partition] = self.done(key)
                done.append(key)
        self.read += done
        return sorted(done)

    def rounds(self) -> list[str]:
        """What is read until a plan has nothing to do and to write."""
        before = len(self.read)
        for _ in range(100):
            kept = dict(self.stored)
            if not self.round() and kept == self.stored:
                return sorted(self.read[before:])
        raise AssertionError("there was always something to do")

    def done(self, key: str) -> SourceOffset:
        """The entry of the object *key*, read to its end."""
        found = self.store.objects[key]
        return {"recordCount": 1, "anchor": 9, "skip": 0, "version": found.version, "size": 9} | {
            "format": "jsonl",
            "done": True,
        }

    def explained(self) -> dict[str, Explained]:
        """What is told of each object, by its key."""
        request = PlanRequest(slots=1, offsets=StoredOffsets(self.stored))
        return {each.name.removeprefix(ROOT): each for each in self.connector.explain(request)}

    @property
    def mark(self) -> str:
        """The key of the mark; empty without one."""
        return str(self.stored.get(MARK_OF_STORE, {}).get("key", "")).removeprefix(ROOT)

    @property
    def entries(self) -> list[str]:
        """The keys that have entries."""
        wholes = (each for each in self.stored if MARK not in each)
        return sorted(str(each["filename"]).removeprefix(ROOT) for each in wholes)


def entry_of(key: str) -> SourcePartition:
    """The source partition of an object."""
    return SourcePartition(filename=f"{ROOT}{key}")
