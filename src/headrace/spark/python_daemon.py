"""Spark's Python daemon, which forks a process for each slot, with all that a slot imports imported before.

``python -m headrace.spark.python_daemon pyspark.worker`` is what Spark starts instead of ``pyspark.daemon`` in
headrace's own sessions. A slot's process is then ready in a tenth of the time, and shares most of its memory with the
others.

PySpark's own daemon imports nothing, because libraries that start threads when they are imported may not survive a
fork. Of those that are imported here two have threads, and take care of forks themselves: Arrow's allocator, and numpy's
OpenBLAS, which ends its own before a fork and starts others when they are needed.

Nothing is imported from the working directory that is anywhere else (``PYTHONSAFEPATH``): a file such as ``random.py`` there
would hide one of Python's own modules. Authors' modules there are found after all others.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import redirect_stdout

import numpy as np
import pyarrow as pa
from pyspark import daemon

from headrace.class_path import make_importable


def prepare() -> None:
    """Import what slots need, and keep what their processes have in common out of the garbage collector's way."""
    # Spark reads a port from the standard output, to which nothing else may write.
    with redirect_stdout(sys.stderr):
        importlib.import_module("pyspark.worker")
        importlib.import_module("headrace.spark.slot_function")
        # Arrow imports pandas when it meets the first Python object.
        pa.array([""])
    # The standard library's generator is seeded again by itself.
    os.register_at_fork(after_in_child=np.random.seed)
    gc.collect()
    # A collection writes to each object that it looks at, and a page that is written to is shared no more.
    gc.freeze()


if __name__ == "__main__":
    prepare()
    make_importable([os.getcwd()])  # noqa: PTH109 (as Python itself adds it)
    daemon.manager()
