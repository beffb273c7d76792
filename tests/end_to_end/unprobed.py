"""``file_stream`` as if only polling told whether there is another line."""

from __future__ import annotations

from headrace.connect.partition import OffsetReader
from headrace.connectors.file_stream import FileStreamSourceConnector


class UnprobedConnector(FileStreamSourceConnector):
    """Cannot be probed."""

    def has_work(self, offsets: OffsetReader) -> bool | None:
        """Nobody knows."""
        return None
