"""From where the threads of a worker get memory."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def limit_arenas() -> None:
    """Let all threads of this process share two of the C library's arenas.

    Otherwise glibc makes up to eight for each processor, and each keeps what its threads have freed, although those of a worker mostly
    wait. Does nothing where MALLOC_ARENA_MAX says how many there are, or where the C library has no such setting. Called once, before
    a worker starts threads.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, _ARENAS)
