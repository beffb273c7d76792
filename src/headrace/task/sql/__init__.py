"""The task loop in two processes, with Spark between its halves: frames as rows, and who reads and writes them."""

from __future__ import annotations
