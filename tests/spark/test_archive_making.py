"""The process that makes a class archive; Spark itself is only played."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.jvm.class_archive import ClassArchive
from headrace.jvm.java import Java
from headrace.spark import archive_making
from headrace.spark.archive_making import make_beside
from waiting import until


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """One that no one has made yet."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive_making, "_has_room", lambda: True)
    (tmp_path / "jars").mkdir()
    java = Java(home=tmp_path, executable=tmp_path / "bin" / "java", major=17, origin="here")
    return ClassArchive(java, tmp_path / "jars")


def played(folder: Path, program: str) -> None:
    """Let *program* be what the process runs that makes archives: it is found in *folder*."""
    module = folder / "headrace" / "spark" / "archive_making.py"
    module.parent.mkdir(parents=True)
    for package in (module.parent, module.parent.parent):
        (package / "__init__.py").touch()
    module.write_text(program)


def test_paths_of_the_environment_may_be_relative(
    archive: ClassArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To where the worker is, although the process is in the folder of archives."""
    played(tmp_path / "modules", _NAMES_ITS_PATHS)
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "JAVA_HOME", "SPARK_HOME"):
        monkeypatch.setenv(name, "modules")
    monkeypatch.setenv("HEADRACE_CACHE", "cache")
    make_beside(archive)

    modules, cache = tmp_path / "modules", tmp_path / "cache"
    log = (archive.folder / "making.log").read_text()
    assert [str(each) for each in (archive.folder, modules, modules, modules, cache)] == log.split()


_NAMES_ITS_PATHS = """
import os
print(os.getcwd(), *map(os.environ.get, ("PYTHONPATH", "JAVA_HOME", "SPARK_HOME", "HEADRACE_CACHE")))
"""


def test_a_process_that_cannot_begin_is_a_failure(
    archive: ClassArchive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged once, with where the reason is, and not tried at each start."""
    caplog.set_level(logging.INFO)
    played(tmp_path / "modules", "import no_such_module")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    make_beside(archive)
    make_beside(archive)

    log = archive.folder / "making.log"
    assert 1 == log.read_text().count("No module named 'no_such_module'")
    [message] = caplog.messages
    assert message.endswith(f"see {log}")


@pytest.mark.parametrize("hangs", [True, False])
def test_what_is_given_up_leaves_no_file(
    archive: ClassArchive, tmp_path: Path, *, hangs: bool
) -> None:
    """Its JVM would write one of 150 MB when it sees that the process is gone."""
    command = [sys.executable, "-c", _GIVEN_UP, str(tmp_path), str(hangs)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    pid = int((tmp_path / "pid").read_text())
    until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))
    assert (False, False) == (any(archive.folder.glob("new-*")), archive.is_wanted())


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


_GIVEN_UP = """
import subprocess, sys, time
from pathlib import Path
from types import SimpleNamespace
from pyspark import SparkContext
from headrace.jvm.class_archive import ClassArchive
from headrace.jvm.java import Java
from headrace.spark import archive_making, engine, session
folder, hangs = Path(sys.argv[1]), sys.argv[2] == "True"
archive_making._SECONDS = 0.5 if hangs else 60
java = Java(home=folder, executable=folder / "bin" / "java", major=17, origin="here")
session.class_archive = lambda: ClassArchive(java, folder / "jars")
writes = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write('classes')"
def launched(_, java_options):
    file = java_options[0].partition("=")[2]
    proc = subprocess.Popen([sys.executable, "-c", writes, file], stdin=subprocess.PIPE)
    (folder / "pid").write_text(str(proc.pid))
    if hangs:
        time.sleep(60)
    SparkContext._gateway = SimpleNamespace(proc=proc, shutdown=lambda: None)
    raise OSError("The Python process of the first job was lost.")
session.open_session = launched
archive_making.make()
"""
