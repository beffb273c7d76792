"""Class archives: classes that a JVM has loaded and checked once, in a file that its next starts map into memory.

An archive fits one Java runtime and one list of jars, and is never required: without one a JVM just starts more slowly.
Java 17 to 24 have dynamic class-data archives, newer ones AOT caches. An archive holds code, so it is kept in
a folder that only its owner may enter, is renamed into place when it is complete, and has its checksum in its name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import stat
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.connect.errors import ConnectError
from headrace.jvm.cache import cache_folder
from headrace.jvm.java import Java

# The first version whose cache is better than a class-data archive: it does not build on an archive of Java's own
# classes, which trimmed runtimes lack, and works with every collector.
_FIRST_WITH_AOT = 25
# The version of what goes into an archive: with another number, new archives are made.
_RECIPE = 1
_CHUNK_BYTES = 1 << 20
# Most failures happen again at each attempt; a full disk or too little memory may be gone a day later.
_RETRY_SECONDS = 24 * 3600.0
# An archive that is unused for so long is of a Java or a Spark that was replaced. Each has 150 MB and more.
_UNUSED_SECONDS = 30 * 24 * 3600.0


class ClassArchive:
    """The archive of one Java runtime and the jars in one folder, whether or not it exists.

    Raises ConnectError where there can be none: the cache folder cannot be written or made private.
    """

    def __init__(self, java: Java, jars: Path) -> None:
        self._folder = _private(cache_folder("archives"))
        self._has_aot = java.major >= _FIRST_WITH_AOT
        self._identity = _identity(java, jars)
        self._ending = "aot" if self._has_aot else "jsa"

    def options(self) -> Sequence[str]:
        """A JVM's options to start from the archive; empty if there is none.

        An archive whose content has changed is removed.
        """
        for file in self._files():
            if _is_ours(file) and file == self._named(file):
                # The removal of unused archives goes by this time.
                with suppress(OSError):
                    os.utime(file)
                option = "AOTCache" if self._has_aot else "SharedArchiveFile"
                # Java checks by itself whether the archive fits, starts without it if not, and need not log that.
                return [f"-XX:{option}={shlex.quote(str(file))}", "-Xlog:disable"]
            file.unlink(missing_ok=True)
        return []

    def discard(self, reason: str) -> None:
        """Remove the archive, because of *reason*; no other one is made for a day."""
        for file in self._files():
            file.unlink(missing_ok=True)
        self.failed(reason)

    def is_wanted(self) -> bool:
        """Whether there is none, and the last failure to make one is long enough ago."""
        if any(self._files()):
            return False
        with suppress(OSError):
            return time.time() > self._failure.stat().st_mtime + _RETRY_SECONDS
        return True

    @property
    def folder(self) -> Path:
        """The folder of all archives. Only its owner may enter it."""
        return self._folder

    @contextmanager
    def making(self) -> Generator[Path | None]:
        """The file to write, for the one process that makes it now; ``None`` for others, and if no archive is wanted.

        When the block ends, the file becomes the archive. When the block raises, the file is removed and :meth:`failed`
        is called; so it is when the block has written nothing, which raises ConnectError. When a second process is
        killed in the block, that counts as a failure, too: with too little memory, every process would be.
        """
        with self._lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            self._lock.write_text(str(os.getpid()))
            for left in self._folder.glob("new-*"):
                left.unlink(missing_ok=True)
            if not self.is_wanted():
                yield None
                return
            self._remove_unused()
            self._begin()
            file = self._folder / f"new-{os.getpid()}.{self._ending}"
            try:
                yield file
                self._put(file)
            except Exception as error:
                file.unlink(missing_ok=True)
                self.failed(str(error))
                raise

    def maker(self) -> int | None:
        """The pid of the process that makes an archive at this moment; ``None`` if no one does."""
        with suppress(OSError), self._lock.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read() or "0") or None
        return None

    def recording(self, file: Path) -> Sequence[str]:
        """A JVM's options to write *file* when it ends."""
        option = "AOTCacheOutput" if self._has_aot else "ArchiveClassesAtExit"
        return [f"-XX:{option}={shlex.quote(str(file))}", "-Xlog:disable"]

    def failed(self, reason: str) -> None:
        """Record that the archive could not be made, or a JVM not be started from it; none is made for a day."""
        self._failure.write_text(f"{reason}\n")
        self._begun.unlink(missing_ok=True)

    def _begin(self) -> None:
        interrupted = self._begun.exists()
        self._begun.touch()
        if interrupted:
            self._failure.write_text("Two processes were killed while they made it.\n")

    def _put(self, file: Path) -> None:
        if not file.is_file() or not file.stat().st_size:
            raise ConnectError("Java ended without writing a class archive.")
        file.chmod(0o600)
        with file.open("rb") as written:
            os.fsync(written.fileno())
        file.replace(self._named(file))
        for mark in (self._failure, self._begun):
            mark.unlink(missing_ok=True)

    @property
    def _lock(self) -> Path:
        return self._folder / "lock"

    @property
    def _failure(self) -> Path:
        return self._folder / f"{self._identity}.failed"

    @property
    def _begun(self) -> Path:
        return self._folder / f"{self._identity}.begun"

    def _files(self) -> Iterator[Path]:
        return self._folder.glob(f"{self._identity}-*.{self._ending}")

    def _named(self, file: Path) -> Path:
        return self._folder / f"{self._identity}-{_checksum(file):08x}.{self._ending}"

    def _remove_unused(self) -> None:
        oldest = time.time() - _UNUSED_SECONDS
        for pattern in ("*.jsa", "*.aot", "*.failed", "*.begun"):
            for file in self._folder.glob(pattern):
                if file.stat().st_mtime < oldest:
                    file.unlink(missing_ok=True)


def _private(folder: Path) -> Path:
    try:
        folder.chmod(0o700)
    except OSError as error:
        raise ConnectError(f"{folder} cannot be made private: {error.strerror}.") from error
    return folder


def _is_ours(file: Path) -> bool:
    found = file.lstat()
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022


def _identity(java: Java, jars: Path) -> str:
    """A short hash of everything that an archive has to fit. Java itself compares most of it, too."""
    home = java.executable.parent.parent
    parts = [str(_RECIPE), str(java.major), str(home), str(jars), *_files_in(jars)]
    modules = home / "lib" / "modules"
    parts += [_stamp(modules)] if modules.is_file() else []
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _files_in(folder: Path) -> Iterator[str]:
    yield from (_stamp(each) for each in sorted(folder.iterdir()))


def _stamp(file: Path) -> str:
    found = file.stat()
    return f"{file.name} {found.st_size} {found.st_mtime_ns}"


def _checksum(file: Path) -> int:
    found = 0
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            found = zlib.crc32(chunk, found)
    return found
