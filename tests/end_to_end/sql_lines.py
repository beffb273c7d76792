"""A SQL step over the lines of a scene, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

SQL = {
    "transforms": "sql",
    "transforms.sql.type": "headrace.transforms.SparkSql",
    "transforms.sql.select": "from_json(value, 'line INT').line AS line, get_json_object(value, '$.file') AS file",
    "transforms.sql.where": "get_json_object(value, '$.line') % 3 != 0",
}


def selected(lines: Sequence[bytes]) -> list[bytes]:
    """What is sent of *lines*."""
    rows = [json.loads(line) for line in lines]
    return [
        b'{"line":%d,"file":"%d"}' % (row["line"], row["file"]) for row in rows if row["line"] % 3
    ]
