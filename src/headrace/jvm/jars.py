"""Sets of jars whose every byte is pinned: found in the cache, or fetched once."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headrace.connect.errors import ConnectError
from headrace.jvm import ivy
from headrace.jvm.cache import cache_folder, locked
from headrace.jvm.java import Java
from headrace.jvm.pins import Pin, digest_of, faults, pins_of
from headrace.jvm.trust import trust_options

log = logging.getLogger(__name__)


def class_path(jar_set: str, *, java: Java) -> str:
    """The verified jars of *jar_set* (``broker`` or ``connect``), as Java's ``-cp`` takes them.

    Every jar's SHA-256 is compared at each call, which takes about 0.1 s. A set that is not in the
    cache is fetched first: tens of seconds, and needs the network. Other processes that want jars
    wait meanwhile. Raises ConnectError with what to do.
    """
    pins = pins_of(jar_set)
    folder = cache_folder("jars") / f"{jar_set}-{digest_of(pins)}"
    with locked(cache_folder("jars") / "lock"):
        _complete(folder, pins, java=java)
    return os.pathsep.join(str(folder / pin.file_name) for pin in pins)


def _complete(folder: Path, pins: Sequence[Pin], *, java: Java) -> None:
    if not all((folder / pin.file_name).is_file() for pin in pins):
        log.info("Fetching %d jars, once; they are kept in %s", len(pins), folder)
        _fetch(folder, pins, java=java)
        return
    changed = next(faults(folder, pins), None)
    if changed:
        raise ConnectError(
            f"{changed} Somebody changed it, or the disk did. "
            f"Remove the folder {folder} and start again: the jars are then fetched anew."
        )


def _fetch(folder: Path, pins: Sequence[Pin], *, java: Java) -> None:
    """Fetch everything beside *folder*, verify it, then rename: the folder is whole or not there."""
    try:
        _attempt(folder, pins, java=java, options=trust_options())
    except ConnectError as error:
        # The second time with Java's own certificates, and nothing kept that may be broken.
        log.warning("%s\nTrying once more.", error)
        shutil.rmtree(cache_folder("ivy"), ignore_errors=True)
        try:
            _attempt(folder, pins, java=java, options=())
        except ConnectError as again:
            raise ConnectError(
                f"{again}\nThe jars come from Maven's central repository. Check the network and the "
                "proxy's variables (https_proxy, SSL_CERT_FILE for its certificate), or name a file "
                "of Ivy settings with your own mirror in HEADRACE_IVY_SETTINGS, and start again."
            ) from again


def _attempt(folder: Path, pins: Sequence[Pin], *, java: Java, options: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as name:
        whole = Path(name) / "jars"
        whole.mkdir()
        ivy.retrieve(pins, whole, java=java, cache=cache_folder("ivy"), options=options)
        problems = list(faults(whole, pins))
        if problems:
            raise ConnectError(f"What was fetched is not what is pinned: {problems[0]}")
        shutil.rmtree(folder, ignore_errors=True)
        whole.replace(folder)
