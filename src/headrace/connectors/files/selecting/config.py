"""The settings that say which of the files that are there are read, and when they are complete."""

from __future__ import annotations

from headrace.connect.config import Config
from headrace.connect.setting import setting
from headrace.connectors.files.selecting.exclusion import (
    DEFAULT_EXCLUDED,
    Exclusion,
    excluded_by,
    exclusion_problem,
)
from headrace.connectors.files.selecting.marker import Marker, marker_problem


class SelectionConfig(Config):
    """What is left out, and what waits."""

    exclude: tuple[str, ...] = setting(
        "files.exclude",
        default=DEFAULT_EXCLUDED,
        valid=exclusion_problem,
        doc="Globs, comma separated: files and folders below what files.path names are left out where their "
        "name matches one. The default are names of files that are being written and of marks of Hadoop "
        "and Spark; they hold beside those given, unless none is the first of these, such as none,*.bad. An empty "
        "value leaves nothing out. What files.path itself names is read: a file by its whole name, or files "
        "by a glob such as *.tmp.",
    )
    complete_marker: str | None = setting(
        "files.complete.marker",
        default=None,
        non_empty=True,
        valid=marker_problem,
        doc="A file that is new is read once its marker is there, in the same folder: a name, such as "
        "_SUCCESS, is one marker for all files of the folder; with {name} or {stem} (the name without its "
        "last extension) in it each file has its own, such as {name}.done. Markers are not read.",
    )

    @property
    def exclusion(self) -> Exclusion:
        """What ``files.exclude`` says."""
        return excluded_by(self.exclude)

    @property
    def marker(self) -> Marker | None:
        """What ``files.complete.marker`` says."""
        return None if self.complete_marker is None else Marker(text=self.complete_marker)
