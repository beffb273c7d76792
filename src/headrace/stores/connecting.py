"""How a server is reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """How to reach a server; *ca_setting* is the key that an error's advice names."""

    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    verify: bool = True
    ca_file: str | None = None
    ca_setting: str = ""
