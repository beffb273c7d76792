"""Values in the worker's environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.runtime.providers.provider import LookupFailedError


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentProvider:
    """``${env:PASSWORD}``, as Kafka's ``EnvVarConfigProvider``; only names that *pattern* matches as a whole."""

    pattern: re.Pattern[str] = re.compile(".*", re.DOTALL)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def value(self, path: str, key: str) -> str:
        """See :class:`~headrace.runtime.providers.provider.Provider`."""
        if path:
            raise LookupFailedError(f"variables have no path, and here it is {path}")
        if not self.pattern.fullmatch(key):
            raise LookupFailedError(f"{key} does not match allowlist.pattern of the provider")
        if key not in self.environment:
            raise LookupFailedError(f"the worker's environment has no variable {key}")
        return self.environment[key]

    def file(self, path: str, key: str) -> Path | None:
        """None: a process's environment stays as it is."""
        return None
