"""Makes the class archive that speeds up later starts of Spark's JVM, in a process of its own.

``python -m headrace.spark.archive_making`` starts Spark as headrace does, runs the first job of a session, and makes
the JVM write an archive of the classes that it has loaded. That takes half a minute of one core, at a low priority,
while the worker's session is ready.
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
# A tenth of the worker's share when both want the same core; with the lowest priority it would never end on a busy machine.
_NICE = 10
# A JVM, a Python process, and the classes while they are written. With less, the worker itself might run out of memory.
_ROOM_BYTES = 1536 << 20
_CGROUP = Path("/sys/fs/cgroup")
_LOG = "making.log"
_PATHS = ("PYTHONPATH", "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR")

_log = logging.getLogger(__name__)


def make_beside(archive: ClassArchive) -> None:
    """Make *archive* in a process that outlives this one, if it is wanted and there is memory for it."""
    if not archive.is_wanted() or not _has_room():
        return
    with (archive.folder / _LOG).open("ab") as log:
        # In a folder that only its owner may enter, so that nothing is imported from the current directory.
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
            "Spark's next start will not be faster than this one: the class archive could not be made, see %s",
            log.name,
        )


def _absolute(variables: Sequence[str]) -> dict[str, str]:
    """The *variables* in the environment with absolute paths, for a process in another folder."""
    found = {each: os.environ.get(each) for each in variables}
    return {
        name: os.pathsep.join(map(os.path.abspath, value.split(os.pathsep)))
        for name, value in found.items()
        if value
    }


def _has_room() -> bool:
    """Whether there seems to be enough free memory for a second JVM."""
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
    """Continue in a child process that no one waits for, and that is killed first when memory runs out."""
    if os.fork():
        os._exit(0)
    os.nice(_NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def make() -> None:
    """Make the archive of this Java and this Spark in this process, unless it exists or another process makes it."""
    # After the fork: it takes a second to import.
    from headrace.spark import java_process  # noqa: PLC0415
    from headrace.spark.job import first_job  # noqa: PLC0415
    from headrace.spark.session import SparkSettings, class_archive, discard_session, open_session  # noqa: PLC0415

    archive = class_archive()
    with suppress(OSError):
        # A process group of its own, so that child processes can be killed with this one.
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
                # A JVM that is still running would write the file later.
                discard_session(None)
                raise
            finally:
                overdue.cancel()
    except Exception:  # noqa: BLE001 (any error is logged, and Spark starts without an archive)
        _log.exception("The class archive could not be made")


def _write_to(log: Path) -> None:
    with log.open("wb") as file:
        for each in (1, 2):
            os.dup2(file.fileno(), each)
    logging.basicConfig(level=logging.INFO)


def _give_up(archive: ClassArchive, file: Path) -> None:
    archive.failed(f"It took more than {_SECONDS:g} s.")
    file.unlink(missing_ok=True)
    # With its JVM, which would write the file when it notices that this process is gone.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _detach()
    make()
