"""Which jars belong to a set, and what each must be, byte for byte.

The files in ``pins/`` have one jar a line: ``organisation:name:revision sha256``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

JAR_SETS = ("broker", "connect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One jar by its Maven coordinates and the SHA-256 of its bytes."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in a folder of jars."""
        return f"{self.name}-{self.revision}.jar"


def pins_of(jar_set: str) -> tuple[Pin, ...]:
    """The pins of one of JAR_SETS, in the order of their file."""
    return parsed(files("headrace.jvm").joinpath("pins", f"{jar_set}.txt").read_text())


def parsed(text: str) -> tuple[Pin, ...]:
    """The pins written in *text*."""
    pins: list[Pin] = []
    for line in text.splitlines():
        coordinates, sha256 = line.split()
        organisation, name, revision = coordinates.split(":")
        pins.append(Pin(organisation=organisation, name=name, revision=revision, sha256=sha256))
    return tuple(pins)


def digest_of(pins: Sequence[Pin]) -> str:
    """A short name for exactly these jars, so that two versions of a set do not share a folder."""
    return hashlib.sha256("".join(pin.sha256 for pin in pins).encode()).hexdigest()[:8]


def faults(folder: Path, pins: Sequence[Pin]) -> Iterator[str]:
    """A sentence for each jar that is missing from *folder* or is not the pinned one."""
    for pin in pins:
        jar = folder / pin.file_name
        if not jar.is_file():
            yield f"{pin.file_name} is missing."
        elif sha256_of(jar) != pin.sha256:
            yield f"{pin.file_name} is not the pinned file: its SHA-256 is {sha256_of(jar)}."


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
