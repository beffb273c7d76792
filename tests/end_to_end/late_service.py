"""An author's transformation that asks a service, which keeps one line waiting once; for tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from headrace.connect import Config, RetriableError, SourceRecord, setting

LATE_LINE = 15_000
LATE_SECONDS = 8.0


class LateServiceConfig(Config):
    """Settings of :class:`LateService`."""

    asked: str = setting(doc="The file that keeps when the line was seen first.")


class LateService:
    """Lets every line pass, one of them some seconds after it was seen first, by whichever process."""

    config_class = LateServiceConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Take ``asked``."""
        self._asked = Path(LateServiceConfig.parse(config).asked)

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record*, in the end."""
        assert isinstance(record.value, dict)
        if record.value.get("line") == LATE_LINE and self._waited() < LATE_SECONDS:
            raise RetriableError("The service is not there yet.")
        return record

    def _waited(self) -> float:
        if not self._asked.exists():
            self._asked.touch()
        return time.time() - self._asked.stat().st_mtime
