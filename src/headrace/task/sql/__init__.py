"""The task loop in two processes, with Spark SQL between them: frames as rows, the reader and the writer."""

from __future__ import annotations
