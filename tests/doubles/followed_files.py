"""A planned connector whose shares have no end: it follows the files of a folder as they grow, and finds new ones."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from headrace import __version__
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, Plan, PlannedConnector, PlanRequest
from headrace.connect.partition import OffsetReader, SourcePartition
from headrace.connect.setting import setting
from headrace.connect.task import SourceTask, Split

FOLLOWED = "doubles.followed_files:FollowedFiles"

_LOOK_SECONDS = 0.05


class FollowedConfig(Config):
    """Where the files are, and where their lines go."""

    folder: str = setting(doc="The folder.")
    topic: str = setting(doc="The topic.")


class FollowedTask(SourceTask):
    """Reads whole lines of the files of its share; each poll returns those of one file."""

    def start(self, config: Mapping[str, str]) -> None:
        """Begin behind what is committed."""
        self._config = FollowedConfig.parse(config)
        self._at = {
            split.partition: reached(self.context.offsets, split.partition)
            for split in self.context.splits
        }

    def poll(self) -> list[SourceBatch]:
        """Lines that have come since; nothing when there are none in any file."""
        for partition, at in self._at.items():
            lines = _lines(Path(self._config.folder, str(partition["file"])), at)
            if lines:
                # Files that were read are looked at after the others.
                del self._at[partition]
                self._at[partition] = at + sum(map(len, lines))
                return [self._batch(partition, at, lines)]
        return []

    def _batch(self, partition: SourcePartition, at: int, lines: list[bytes]) -> SourceBatch:
        ends = [at := at + len(line) for line in lines]
        return SourceBatch(
            topic=self._config.topic,
            values=pa.array([line.rstrip(b"\n").decode() for line in lines], pa.utf8()),
            source_partition=partition,
            offsets=BatchOffsets(columns={"position": pa.array(ends, pa.int64())}),
        )


class FollowedFiles(PlannedConnector):
    """Every file is a source partition. A thread looks for new ones, and requests a new plan for them."""

    version = __version__
    config_class: ClassVar[type[Config]] = FollowedConfig
    task_class: ClassVar[type[SourceTask]] = FollowedTask

    def start(self, props: Mapping[str, str]) -> None:
        """Look at the folder from now on."""
        self._folder = Path(FollowedConfig.parse(props).folder)
        self._known = set[str]()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="followed-files", daemon=True)
        self._thread.start()

    def plan(self, request: PlanRequest) -> Plan:
        """All files, or none if there is nothing to read in any of them."""
        sizes = {SourcePartition(file=name): size for name, size in self._files().items()}
        self._known = {str(partition["file"]) for partition in sizes}
        if all(size <= reached(request.offsets, each) for each, size in sizes.items()):
            return Plan()
        splits = [Split(partition=each) for each in sizes]
        shares = [splits[slot :: request.slots] for slot in range(request.slots)]
        return Plan(shares=shares, followed=True)

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._thread.join()

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED

    def _files(self) -> dict[str, int]:
        return {each.name: each.stat().st_size for each in sorted(self._folder.iterdir())}

    def _look(self) -> None:
        while not self._stopped.wait(_LOOK_SECONDS):
            if not self._files().keys() <= self._known:
                self.context.request_task_reconfiguration()


def reached(offsets: OffsetReader, partition: SourcePartition) -> int:
    """The position behind the last line of *partition* that is committed."""
    position = (offsets.offset(partition) or {}).get("position", 0)
    assert isinstance(position, int)
    return position


def _lines(file: Path, at: int) -> list[bytes]:
    with file.open("rb") as opened:
        opened.seek(at)
        return [line for line in opened.readlines() if line.endswith(b"\n")]
