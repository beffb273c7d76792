"""What runs inside one Spark task: the poll loop, the writer, and the client of the channel to the driver."""

from __future__ import annotations
