"""DropHeaders: removes headers by their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.header_columns import HeaderColumns
from headrace.connect.record import Headers, SourceRecord


class DropHeadersConfig(Config):
    headers: tuple[str, ...] = setting(
        importance="high", doc="The names of the headers to leave out, separated by commas."
    )

    def check(self) -> Iterator[Problem]:
        """Require at least one name, and no empty one."""
        message = "Configuration 'headers'"
        if not self.headers:
            yield (
                "headers",
                f"{message} must not be empty. Valid values include: any non-empty value",
            )
        elif "" in self.headers:
            yield "headers", f"{message} values must not be empty."


class DropHeaders:
    """Leaves out every header of certain names; the others keep their order."""

    config_class = DropHeadersConfig

    def configure(self, config: Mapping[str, str]) -> None:
        self._names = frozenset(DropHeadersConfig.parse(config).headers)

    def apply(self, record: SourceRecord) -> SourceRecord:
        return dataclasses.replace(record, headers=self._left(record.headers))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        """All rows at once; columns stay columns."""
        headers = batch.headers
        if headers is None:
            return [batch]
        if isinstance(headers, HeaderColumns):
            columns = [each for each in headers.columns if each.key not in self._names]
            left = HeaderColumns(columns, rows=len(headers)) if columns else None
            return [dataclasses.replace(batch, headers=left)]
        return [dataclasses.replace(batch, headers=[self._left(each) for each in headers])]

    def _left(self, headers: Headers) -> Headers:
        return tuple(header for header in headers if header.key not in self._names)
