"""What runs inside one Spark task: the task loop's two halves, and the channel's client."""

from __future__ import annotations
