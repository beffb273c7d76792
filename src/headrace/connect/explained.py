"""What a plan would do with one object, for people who ask before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One object of a source, and what a plan would do with it. Made by a connector's ``explain``.

    *slots* are the tasks that would read it, from 0; without any, nothing of it is read, and *reason* says
    why. *size* is what would be read, in bytes or whatever the connector's pieces have in common. *fails*
    says that the connector would fail because of it. ``None`` stands for what the connector does not know.
    """

    name: str
    slots: Sequence[int] = ()
    topic: str | None = None
    partition: int | None = None
    form: str | None = None
    size: int | None = None
    reason: str | None = None
    fails: bool = False
