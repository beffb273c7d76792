"""Puts a worker together from its configuration: the composition root."""

from __future__ import annotations

from headrace.worker.data_plane import spark_engine
from headrace.worker.run import Standalone, standalone
from headrace.worker.serving import serving

__all__ = ["Standalone", "serving", "spark_engine", "standalone"]
