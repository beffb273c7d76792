"""A file or an object of which something is known, looked at again without a listing."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connectors.files.seen import ObjectSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is there now. *by_bytes* says that its offsets count the bytes of which it has *file.size*.

    They do not where it is compressed, and where its format counts in something else.
    """

    file: ObjectSeen
    by_bytes: bool
