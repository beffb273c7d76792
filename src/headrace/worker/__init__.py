"""Puts a worker together from its configuration: the composition root."""

from __future__ import annotations

from headrace.runtime.engine import DataPlane
from headrace.worker.data_plane import spark_engine
from headrace.worker.distributed import serving_group
from headrace.worker.standalone import running, serving, stopped, stored

__all__ = [
    "DataPlane",
    "running",
    "serving",
    "serving_group",
    "spark_engine",
    "stopped",
    "stored",
]
