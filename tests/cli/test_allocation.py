"""The threads of a worker share memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Ten threads that keep something each; what the C library says of its arenas goes into a file.
PROGRAM = """
import ctypes, sys, threading
from headrace.cli.allocation import limit_arenas

limit_arenas()
libc = ctypes.CDLL(None)
libc.fopen.restype = libc.malloc.restype = ctypes.c_void_p
kept, met = [], threading.Barrier(11)

def keep():
    kept.append(libc.malloc(ctypes.c_size_t(1000)))
    met.wait()

for _ in range(10):
    threading.Thread(target=keep).start()
met.wait()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it is a setting of glibc")
@pytest.mark.parametrize(("given", "arenas"), [({}, 2), ({"MALLOC_ARENA_MAX": "3"}, 3)])
def test_so_many_arenas_are_shared(given: dict[str, str], arenas: int, tmp_path: Path) -> None:
    """Or as many as the environment says."""
    told = tmp_path / "arenas.xml"
    command = [sys.executable, "-c", PROGRAM, str(told)]

    subprocess.run(command, env={**os.environ, **given}, check=True)

    assert arenas == told.read_text().count("<heap nr=")
