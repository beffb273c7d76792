"""What the places of source offsets hold, as somebody else reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headrace.testing.judge import committed_records


def in_topic(bootstrap: str, topic: str, connector: str) -> Mapping[str, object]:
    """What *topic* has of *connector*, by source partitions as JSON; read by another client library."""
    last = {bytes(each.key): each.value for each in committed_records(bootstrap, topic)}
    return {
        json.dumps(json.loads(key)[1]): json.loads(value)
        for key, value in last.items()
        if value is not None and json.loads(key)[0] == connector
    }
