"""Which version of headrace runs where slots run: those of another version than the worker's get no work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from headrace import __version__

# Longer than a connector pauses between two attempts: one that is refused again and again is remembered.
_REMEMBERED_SECONDS: Final = 60.0


class SlotVersions:
    """The machines whose slots were refused because of their version, until one there has this worker's version. Any thread may call.

    A machine of which nothing has been heard for a minute is forgotten: it may be gone, or nothing may have work for it.
    """

    def __init__(
        self, own: str = __version__, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._own = own
        self._clock = clock
        self._lock = threading.Lock()
        self._refused: dict[str, tuple[float, str]] = {}

    def refusal(self, host: str, version: str) -> str | None:
        """Why a slot on *host* with this *version* of headrace gets no work, in a sentence; ``None`` if it may have some."""
        with self._lock:
            if version == self._own:
                self._refused.pop(host, None)
                return None
            sentence = (
                f"Tasks on {host} have headrace {version}, but this worker has {self._own}, so they are given no work. They begin as soon as "
                f"they have {self._own}: give this worker's executors an environment with it (spark.pyspark.python, and spark.archives where "
                f"it is not installed), or install headrace {self._own} there."
            )
            self._refused[host] = self._clock(), sentence
            return sentence

    @property
    def problem(self) -> str | None:
        """What the last refusal said, for the worker's health; ``None`` while all is well."""
        with self._lock:
            since = self._clock() - _REMEMBERED_SECONDS
            self._refused = {host: told for host, told in self._refused.items() if told[0] > since}
            return max(self._refused.values(), default=(0.0, None))[1]
