"""The settings that say with which files to begin, and how many of them one round takes."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.connect.config import Config
from headrace.connect.setting import SettingType, setting


def moment_ms(text: str) -> int:
    """*text* as milliseconds since 1970, without a zone in UTC; raises ``ValueError``."""
    found = datetime.fromisoformat(text.strip())
    zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def _moment_problem(text: str | None) -> str | None:
    try:
        moment_ms(text or "1970-01-01")
    except ValueError:
        return "Give a date, or a date and a time, such as 2026-01-31 or 2026-01-31T18:00:00+01:00."
    return None


class RoundConfig(Config):
    """Where to begin, and how much to take at once."""

    start_after: str | None = setting(
        "files.start.after",
        default=None,
        non_empty=True,
        doc="Only files whose path, or objects whose key, sorts behind this text are read: on local disk "
        "an absolute path, such as /data/in/a.jsonl; in a store a key, such as in/a.jsonl. What is begun "
        "already and sorts before it is left as it is.",
    )
    modified_since: str | None = setting(
        "files.modified.since",
        default=None,
        non_empty=True,
        valid=_moment_problem,
        doc="Only files that were changed then or later are read: a date, or a date and a time, in UTC "
        "unless it says otherwise, such as 2026-01-31T18:00:00+01:00.",
    )
    max_objects_per_round: int = setting(
        "files.max.objects.per.round",
        kind=SettingType.LONG,
        default=0,
        at_least=0,
        doc="The most files that one micro-batch reads, in the order of their names; the next one follows "
        "at once. 0: as many as a plan holds, which is 100,000, or all with files.follow.",
    )
    max_bytes_per_round: int = setting(
        "files.max.bytes.per.round",
        kind=SettingType.LONG,
        default=0,
        at_least=0,
        doc="The most bytes of files that one micro-batch reads, in the order of their names, but at least "
        "one file or range; the next one follows at once. 0 for no limit.",
    )

    @property
    def modified_since_ms(self) -> int | None:
        """The same in milliseconds since 1970."""
        return None if self.modified_since is None else moment_ms(self.modified_since)
