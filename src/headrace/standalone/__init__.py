"""Puts a standalone worker together from its configuration: the composition root."""

from headrace.standalone.data_plane import spark_engine
from headrace.standalone.serving import serving
from headrace.standalone.worker import Standalone, standalone

__all__ = ["Standalone", "serving", "spark_engine", "standalone"]
