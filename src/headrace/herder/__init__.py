"""What a worker can be asked to do, and how a standalone worker does it: one thread decides, runs do the work."""

from __future__ import annotations
