"""What a source gives for an object's bytes: any binary stream of the standard library's kind."""

from __future__ import annotations

from io import BufferedIOBase, RawIOBase

Readable = RawIOBase | BufferedIOBase
"""An open object, from its first byte on. Only Parquet needs one that can seek."""
