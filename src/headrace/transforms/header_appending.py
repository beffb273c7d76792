"""Headers behind those that the records of a batch have already."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.header_columns import HeaderColumn, HeaderColumns


def with_headers(batch: SourceBatch, added: Sequence[HeaderColumn]) -> SourceBatch:
    """*batch* with one more header in every row for each column of *added*; columns stay columns. Pure."""
    rows = len(batch)
    if batch.headers is None or isinstance(batch.headers, HeaderColumns):
        there = () if batch.headers is None else batch.headers.columns
        return dataclasses.replace(batch, headers=HeaderColumns((*there, *added), rows=rows))
    behind = HeaderColumns(added, rows=rows)
    headers = [(*batch.headers[row], *behind[row]) for row in range(rows)]
    return dataclasses.replace(batch, headers=headers)
