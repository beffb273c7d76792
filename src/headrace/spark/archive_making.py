"""Makes the class archive that later starts of Spark's JVM are fast with, in a process of its own.

``python -m headrace.spark.archive_making`` starts Spark as headrace does, runs the first job of a session, and has
the JVM write what it has loaded. That takes half a minute of one core, at a low priority, beside a worker whose
session is ready.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headrace.jvm.class_archive import ClassArchive

# A busy machine gives a low priority almost no time, so half an hour is allowed.
_SECONDS = 1800.0
# A tenth of what the worker gets where both want the same core; the lowest priority would never be done on a busy machine.
_NICE = 10
# A JVM, a Python process, and the classes while they are written. Less, and the worker itself might be short of memory.
_ROOM_BYTES = 1536 << 20
_CGROUP = Path("/sys/fs/cgroup")
_LOG = "making.log"
_PATHS = ("PYTHONPATH", "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR")

_log = logging.getLogger(__name__)


def make_beside(archive: ClassArchive) -> None:
    """Have *archive* made by a process that outlives this one, if it is wanted and there is memory for it."""
    if not archive.is_wanted() or not _has_room():
        return
    with (archive.folder / _LOG).open("ab") as log:
        # In the folder that only its owner may enter: nothing is imported from where this process happens to be.
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            cwd=archive.folder,
            env={**os.environ, **_absolute(_PATHS), "HEADRACE_CACHE": str(archive.folder.parent)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=False,
        )
    if done.returncode:
        archive.failed(f"The process that makes it ended with {done.returncode}.")
        _log.info(
            "Spark's next start will not be faster than this one: no class archive could be made, see %s",
            log.name,
        )


def _absolute(variables: Sequence[str]) -> dict[str, str]:
    """What the environment has of *variables*, for a process that is in another folder."""
    found = {each: os.environ.get(each) for each in variables}
    return {
        name: os.pathsep.join(map(os.path.abspath, value.split(os.pathsep)))
        for name, value in found.items()
        if value
    }


def _has_room() -> bool:
    """Whether a second JVM takes memory from no one, as far as can be seen."""
    free = [_ROOM_BYTES]
    with suppress(OSError):
        found = re.search(
            r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE
        )
        free += [int(found[1]) << 10] if found else []
    with suppress(OSError, ValueError):
        most = int((_CGROUP / "memory.max").read_text())
        free.append(most - int((_CGROUP / "memory.current").read_text()))
    return min(free) >= _ROOM_BYTES


def _detach() -> None:
    """Go on in a child that no one has to wait for, and that is the first to go when memory gets short."""
    if os.fork():
        os._exit(0)
    os.nice(_NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def make() -> None:
    """Make the archive of this Java and this Spark in this process, unless it is there or another one makes it."""
    # After the fork: it takes a second to import.
    from headrace.spark import java_process  # noqa: PLC0415
    from headrace.spark.engine import first_job  # noqa: PLC0415
    from headrace.spark.session import SparkSettings, class_archive, discard_session, open_session  # noqa: PLC0415

    archive = class_archive()
    with suppress(OSError):
        # What is started here can then be ended with this process.
        os.setpgid(0, 0)
    try:
        with archive.making() as file:
            if file is None:
                return
            _write_to(archive.folder / _LOG)
            overdue = threading.Timer(_SECONDS, _give_up, args=[archive, file])
            overdue.daemon = True
            overdue.start()
            options = archive.recording(file)
            try:
                session = open_session(SparkSettings(master="local[1]"), java_options=options)
                first_job(session, slots=1)
                session.stop()
                java_process.end(seconds=_SECONDS)
            except Exception:
                # A JVM that has not ended would write the file later.
                discard_session(None)
                raise
            finally:
                overdue.cancel()
    except Exception:  # noqa: BLE001 (whatever it was, it is written down, and Spark starts without)
        _log.exception("The class archive could not be made")


def _write_to(log: Path) -> None:
    with log.open("wb") as file:
        for each in (1, 2):
            os.dup2(file.fileno(), each)
    logging.basicConfig(level=logging.INFO)


def _give_up(archive: ClassArchive, file: Path) -> None:
    archive.failed(f"It has taken more than {_SECONDS:g} s.")
    file.unlink(missing_ok=True)
    # With its JVM, which would write the file when it sees that this process is gone.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _detach()
    make()
