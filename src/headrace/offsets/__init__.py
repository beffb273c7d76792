"""Where committed offsets are stored, in which bytes, and how people read and change them."""

from __future__ import annotations
